#include "comm/shared/group.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/index.h"
#include "base/str.h"
#include "comm/shared/futex.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

// Spinning ends after about what it costs to sleep and be woken.
constexpr std::chrono::microseconds kSpin{60};
constexpr int kPauses = 200;  // some microseconds

}  // namespace

SharedGroup::SharedGroup(SharedWire& wire, Ring ring, int rank)
    : wire_(wire),
      ring_(std::move(ring)),
      rank_(rank),
      in_(ring_.members.size()),
      out_(ring_.members.size()),
      source_(ring_.members.size()),
      pointers_(size()) {}

SharedGroup::~SharedGroup() {
  labels_.fill({});  // their texts may be gone already
  if (started_ != finished_)
    wire_.abort({.kind = Failure::Kind::kGroupLeft, .processor = processor(), .calls = {my_call(finished_ + 1)}});
  block().leave(ring_);
}

Ticket SharedGroup::start(Collective what, ConstBuffer in, Buffer out, const Args& args) {
  check_call(*this, what, in, out, args);
  if (started_ - finished_ == kInFlight) wait({finished_ + 1}, kStartDeadline);
  const std::uint64_t number = started_ + 1;
  labels_[number % kRounds] = args.label;
  if (block().aborted())
    wire_.throw_aborted({.processor = processor(),
                         .step = Call::Step::kStart,
                         .what = what,
                         .label = std::string(args.label),
                         .count = in.count,
                         .dtype = in.dtype,
                         .reduce = args.reduce,
                         .source = args.source,
                         .target = args.target,
                         .members = {.processors = ring_.members}});

  const std::size_t rank = at(rank_), bytes = in.count * size_of(in.dtype);
  if (bytes > kInlineBytes) {
    wire_.check_reach(processor(), in.data, bytes);
    wire_.check_reach(processor(), out.data, out.count * size_of(out.dtype));
  }
  Request request{.in = wire_.place_of(processor(), in.data),
                  .out = wire_.place_of(processor(), out.data),
                  .count = in.count,
                  .source = args.source,
                  .target = args.target,
                  .what = what,
                  .reduce = args.reduce,
                  .dtype = in.dtype};
  complete(request);
  started_ = number;
  RingEntry& entry = ring_.entry(number, rank);
  entry.request = request;
  entry.next_chunk.store(0, std::memory_order_relaxed);
  if (bytes > 0 && bytes <= kInlineBytes) std::memcpy(ring_.inline_data_of(number, rank).bytes.data(), in.data, bytes);
  block().board().started(processor(), what, ring_.list, bytes, args.label);
  entry.number.store(number, std::memory_order_release);
  arrive(number);
  announce(number);
  return {number};
}

// Called when the entry of a member, this one or a member of another host, has its number.
void SharedGroup::arrive(std::uint64_t number) {
  Round& round = ring_.round(number);
  if (round.arrived.fetch_add(kStep) + kStep == ring_.all_arrived(number) && round.sleepers.load() > 0)
    wake_all(round.arrived, block().reach());
}

void SharedGroup::wait(Ticket ticket, Deadline deadline) {
  if (ticket.number > started_) throw InternalError(str("wait for collective ", ticket.number, " of ", started_));
  Timer timer{.limit = deadline.limit};
  while (finished_ < ticket.number) finish(finished_ + 1, timer);
}

void SharedGroup::finish(std::uint64_t number, Timer& timer) {
  await_members(number, timer);
  read_entries(number);
  check_agreement(number);
  if (is_small()) {
    run_small(number);
  } else {
    const std::uint32_t chunks = chunks_per_share(joint_);
    all_done_[number % kRounds] += chunks * static_cast<std::uint32_t>(size()) * kStep;
    work(number, chunks);
    await_chunks(number, timer);
  }
  finished(number);
}

void SharedGroup::finished(std::uint64_t number) {
  finished_ = number;
  block().board().finished(processor());
}

void SharedGroup::run_small(std::uint64_t number) {
  for (std::size_t p = 0; p < in_.size(); ++p) in_[p] = ring_.inline_data_of(number, p).bytes.data();
  run_for_one(joint_, rank_, pointers_);
}

void SharedGroup::read_entries(std::uint64_t number) {
  for (std::size_t p = 0; p < in_.size(); ++p) {
    const Request& request = ring_.entry(number, p).request;
    in_[p] = wire_.reach(ring_.members[p], request.in);
    out_[p] = wire_.reach(ring_.members[p], request.out);
    source_[p] = request.source;
  }
  const Request& mine = request(number);
  joint_ = {.what = mine.what,
            .reduce = mine.reduce,
            .dtype = mine.dtype,
            .count = mine.count,
            .in = in_,
            .out = out_,
            .source = source_};
}

namespace {

bool agree(const Request& a, const Request& b) {
  return a.what == b.what && a.count == b.count && a.dtype == b.dtype && a.reduce == b.reduce;
}

}  // namespace

// Every member compares all members with rank 0, so that all find the same disagreement.
void SharedGroup::check_agreement(std::uint64_t number) {
  const std::size_t size = in_.size();
  const auto refuse = [&](std::size_t a, std::size_t b) {
    fail({.kind = Failure::Kind::kDisagreement,
          .processor = processor(),
          .calls = {my_call(number), call_of(number, a), call_of(number, b)}});
  };
  for (std::size_t p = 1; p < size; ++p)
    if (!agree(ring_.entry(number, 0).request, ring_.entry(number, p).request)) refuse(0, p);
  if (joint_.what != Collective::kPermute) return;
  for (std::size_t p = 0; p < size; ++p) {
    const Request& entry = ring_.entry(number, p).request;
    const int me = static_cast<int>(p);
    if (entry.source >= 0 && ring_.entry(number, at(entry.source)).request.target != me) refuse(p, at(entry.source));
    if (entry.target >= 0 && ring_.entry(number, at(entry.target)).request.source != me) refuse(p, at(entry.target));
  }
}

void SharedGroup::work(std::uint64_t number, std::uint32_t chunks) {
  if (!block().begin_work(processor())) wire_.throw_aborted(my_call(number));
  std::uint32_t ran = 0;
  for (int i = 0; i < size(); ++i) {
    const int share = (rank_ + i) % size();
    std::atomic<std::uint32_t>& next = ring_.entry(number, at(share)).next_chunk;
    while (next.load(std::memory_order_relaxed) < chunks && !block().aborted()) {
      const std::uint32_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks) break;
      run_chunk(joint_, share, chunk, pointers_);
      ++ran;
    }
  }
  block().end_work(processor());
  if (ran == 0) return;
  Round& round = ring_.round(number);
  if (round.done.fetch_add(ran * kStep) + ran * kStep == all_done_[number % kRounds] && round.sleepers.load() > 0)
    wake_all(round.done, block().reach());
}

// True as soon as `reached` is; false when spinning does not pay any more or the wire is aborted.
template <class Reached>
bool SharedGroup::spin_until(Reached reached) const {
  if (reached()) return true;
  if (!wire_.spins()) return false;
  for (int i = 0; i < kPauses; ++i) {
    __builtin_ia32_pause();
    if (reached()) return true;
  }
  // The peer that we wait for may be scheduled on this core: yield between looks.
  const Clock::time_point end = Clock::now() + kSpin;
  do {
    std::this_thread::yield();
    if (reached()) return true;
  } while (Clock::now() < end && !block().aborted());
  return false;
}

// Spins on the entries: the cache line that shows that a peer has come also brings its request.
void SharedGroup::await_members(std::uint64_t number, Timer& timer) {
  std::size_t here = 0;
  const bool all_here = spin_until([&] {
    while (here < in_.size() && ring_.entry(number, here).number.load(std::memory_order_acquire) == number) ++here;
    return here == in_.size();
  });
  if (!all_here) sleep_until(number, ring_.round(number).arrived, ring_.all_arrived(number), timer);
}

void SharedGroup::await_chunks(std::uint64_t number, Timer& timer) {
  const std::atomic<std::uint32_t>& done = ring_.round(number).done;
  const std::uint32_t all_done = all_done_[number % kRounds];
  if (!spin_until([&] { return done.load(std::memory_order_acquire) == all_done; }))
    sleep_until(number, done, all_done, timer);
}

void SharedGroup::say_waiting(std::uint64_t number) {
  const Request& mine = request(number);
  block().board().waiting(processor(), mine.what, ring_.list, mine.bytes(), labels_[number % kRounds]);
}

void SharedGroup::sleep_until(std::uint64_t number, const std::atomic<std::uint32_t>& word, std::uint32_t value,
                              Timer& timer) {
  if (timer.begin == Clock::time_point{}) timer.begin = Clock::now();
  say_waiting(number);
  // The member that completes the word reads `sleepers` after it has changed the word: it sees us, or we see its change.
  std::atomic<std::uint32_t>& sleepers = ring_.round(number).sleepers;
  sleepers.fetch_add(1);
  std::uint32_t seen = word.load();
  for (; seen != value && (seen & kAborted) == 0; seen = word.load()) {
    const std::chrono::nanoseconds left = timer.limit - (Clock::now() - timer.begin);
    if (left.count() <= 0) break;
    sleep_while(word, seen, std::min(left, wire_.patience()), block().reach());
    wire_.progress();
  }
  sleepers.fetch_sub(1);
  if (seen & kAborted) wire_.throw_aborted(my_call(number));
  if (seen != value) give_up(number, timer);
}

Call SharedGroup::call_of(std::uint64_t number, std::size_t rank) const {
  const Request& request = ring_.entry(number, rank).request;
  return {.processor = ring_.members[rank],
          .what = request.what,
          .label = std::string(labels_[number % kRounds]),
          .count = request.count,
          .dtype = request.dtype,
          .reduce = request.reduce,
          .source = request.source,
          .target = request.target,
          .members = {.processors = ring_.members}};
}

void SharedGroup::give_up(std::uint64_t number, const Timer& timer) {
  std::vector<ProcessorId> missing, working;
  for (std::size_t p = 0; p < in_.size(); ++p) {
    const ProcessorId member = ring_.members[p];
    const bool came = ring_.entry(number, p).number.load(std::memory_order_acquire) >= number;
    if (!came && is_excused(number, p)) continue;
    if (!came) missing.push_back(member);
    else if (block().works(member)) working.push_back(member);
  }
  if (missing.empty() && working.empty()) working = owing();
  Failure failure{.kind = Failure::Kind::kTimeout,
                  .processor = processor(),
                  .calls = {my_call(number)},
                  .awaited = {.processors = missing.empty() ? working : missing},
                  .awaited_came = missing.empty(),
                  .seconds = std::chrono::duration<double>(timer.limit).count()};
  for (const ProcessorId member : failure.awaited.processors)
    if (failure.last.size() < kMostStatuses) failure.last.push_back(wire_.status(member));
  fail(std::move(failure));
}

void SharedGroup::fail(Failure failure) {
  wire_.abort(failure);
  throw FailureError(std::move(failure));
}

}  // namespace weft::comm
