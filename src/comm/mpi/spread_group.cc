#include "comm/mpi/spread_group.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <thread>

#include "base/str.h"
#include "comm/mpi/wire.h"

namespace weft::comm {

namespace {

constexpr int kLooks = 200;  // before a waiter sleeps between looks, if it has a core for itself
constexpr std::chrono::microseconds kNap{20};
// How long messages that are under way may take to end after a failure, before their memory is left to them.
constexpr std::chrono::milliseconds kFarewell{200};

}  // namespace

std::uint64_t hash_of(const std::vector<int>& members) {
  std::uint64_t hash = 14695981039346656037u;
  for (const int member : members) hash = (hash ^ static_cast<std::uint64_t>(member + 1)) * 1099511628211u;
  return hash;
}

SpreadGroup::SpreadGroup(MpiWire& wire, Ring ring, int rank, Geography geography)
    : SharedGroup(wire, std::move(ring), rank),
      mpi_(wire),
      geography_(std::move(geography)),
      itinerary_(geography_),
      list_(hash_of(ring_.members)),
      slots_(Itinerary::kInHand) {
  const std::size_t size = ring_.members.size();
  for (Slot& slot : slots_) {
    slot.staging.resize(Itinerary::kStaging);
    slot.steps.reserve(3 * size + 8);
    slot.requests.reserve(2 * size + 2);
    slot.peers.reserve(2 * size + 2);
  }
  mpi_.enter(*this);
}

SpreadGroup::~SpreadGroup() {
  const auto lock = mpi_.lock();
  mpi_.leave(*this);
  if (!give_up_messages()) mpi_.keep_memory(std::move(slots_));
}

// True once no message touches memory any more.
bool SpreadGroup::give_up_messages() {
  const Clock::time_point end = Clock::now() + kFarewell;
  for (Slot& slot : slots_)
    while (!slot.requests.empty() && !settled(slot))
      if (Clock::now() > end) return false;
  return true;
}

void SpreadGroup::complete(Request& request) {
  if (request.bytes() > kMailBytes)
    request.tag = mpi_.take_tags(itinerary_.tags(request.what, request.dtype, request.count));
}

// To one member on every other host; members of one host tell different ones.
void SpreadGroup::announce(std::uint64_t number) {
  const auto lock = mpi_.lock();
  const std::size_t rank = static_cast<std::size_t>(rank_);
  Note note;
  note.rank = rank_;
  note.list = list_;
  note.sequence = ring_.sequence;
  note.number = number;
  note.request = request(number);
  const std::string_view label = labels_[number % kRounds];
  std::copy_n(label.begin(), std::min(label.size(), note.label.size() - 1), note.label.begin());
  if (note.request.bytes() <= kMailBytes) {
    note.length = static_cast<std::uint32_t>(note.request.bytes());
    std::memcpy(note.text.data(), ring_.letter(number, rank).bytes.data(), note.length);
  }
  for (int host = 0; host < geography_.hosts(); ++host)
    if (host != geography_.here)
      mpi_.notes().send(note, ring_.members[static_cast<std::size_t>(geography_.handler(host, rank))]);
}

void SpreadGroup::deliver(const Note& note) {
  const std::size_t rank = static_cast<std::size_t>(note.rank);
  Post& post = ring_.post(note.number, rank);
  post.request = note.request;
  if (note.length > 0) std::memcpy(ring_.letter(note.number, rank).bytes.data(), note.text.data(), note.length);
  hub().note(ring_.members[rank], note.request.what, ring_.list, note.request.bytes(), note.label.data());
  post.number.store(note.number, std::memory_order_release);
  arrive(note.number);
}

void SpreadGroup::advance() {
  if (finished_ == started_) return;
  const std::uint64_t number = finished_ + 1;
  Round& round = ring_.round(number);
  if (phase_ == Phase::kMembers) {
    if (round.arrived.load() != ring_.all_arrived(number)) return;
    begin(number);
  }
  if (phase_ == Phase::kWork) {
    for (Slot& slot : slots_) {
      if (!slot.busy && begun_ < mine_) {
        itinerary_.steps(joint_, begun_++, slot.staging.data(), slot.steps);
        slot.next = 0;
        slot.busy = true;
      }
      if (!slot.busy || !work_on(number, slot)) continue;
      slot.busy = false;
      ++ended_;
      looks_ = 0;
      if (round.done.fetch_add(kStep) + kStep == all_done_[number % kRounds] && round.sleepers.load() > 0)
        wake_all(round.done, hub().reach());
    }
    if (ended_ == mine_) phase_ = Phase::kDrain;
  }
  if (phase_ != Phase::kDrain || round.done.load() != all_done_[number % kRounds]) return;
  phase_ = Phase::kMembers;
  looks_ = 0;
  finished(number);
}

void SpreadGroup::begin(std::uint64_t number) {
  read_posts(number);
  check_agreement(number);
  looks_ = 0;
  phase_ = Phase::kDrain;
  if (is_small()) return run_small(number);
  begun_ = ended_ = 0;
  mine_ = itinerary_.my_items(joint_);
  all_done_[number % kRounds] += static_cast<std::uint32_t>(itinerary_.items_here(joint_)) * kStep;
  phase_ = Phase::kWork;
}

bool SpreadGroup::settled(Slot& slot) {
  int done = 1;
  if (!slot.requests.empty())
    check_mpi(MPI_Testall(static_cast<int>(slot.requests.size()), slot.requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
  if (done == 0) return false;
  slot.requests.clear();
  slot.peers.clear();
  return true;
}

// True when the item is done.
bool SpreadGroup::work_on(std::uint64_t number, Slot& slot) {
  for (; slot.next < slot.steps.size(); ++slot.next) {
    const Step& step = slot.steps[slot.next];
    if (step.kind == Step::Kind::kSend || step.kind == Step::Kind::kReceive) {
      post_message(number, slot, step);
      continue;
    }
    if (!settled(slot)) return false;
    looks_ = 0;
    if (!hub().begin_work(processor())) return false;
    itinerary_.work(joint_, step, slot.staging.data(), pointers_);
    hub().end_work(processor());
  }
  return settled(slot);
}

void SpreadGroup::post_message(std::uint64_t number, Slot& slot, const Step& step) {
  const std::size_t peer = static_cast<std::size_t>(step.peer);
  const bool sends = step.kind == Step::Kind::kSend;
  const Request& receiver = sends ? ring_.post(number, peer).request : request(number);
  const int tag = static_cast<int>(receiver.tag + step.tag), bytes = static_cast<int>(step.bytes);
  const int processor = ring_.members[peer];
  MPI_Request& request = slot.requests.emplace_back(MPI_REQUEST_NULL);
  slot.peers.push_back(processor);
  if (sends) check_mpi(MPI_Isend(step.data, bytes, MPI_BYTE, processor, tag, mpi_.ranks(), &request), "MPI_Isend");
  else check_mpi(MPI_Irecv(step.data, bytes, MPI_BYTE, processor, tag, mpi_.ranks(), &request), "MPI_Irecv");
}

void SpreadGroup::finish(std::uint64_t number, Timer& timer) {
  while (finished_ < number) {
    mpi_.progress();
    if (finished_ >= number) return;
    if (hub().aborted()) wire_.throw_aborted(place(finished_ + 1));
    if (wire_.spins() && ++looks_ < kLooks) continue;
    if (timer.begin == Clock::time_point{}) {
      timer.begin = Clock::now();
      say_waiting(finished_ + 1);
    }
    if (Clock::now() - timer.begin > timer.limit) give_up(finished_ + 1, timer);
    rest(finished_ + 1);
  }
}

// A short sleep, ended by what happens on this host; messages have to be looked for.
void SpreadGroup::rest(std::uint64_t number) {
  Round& round = ring_.round(number);
  if (phase_ == Phase::kWork) return std::this_thread::sleep_for(kNap);
  const bool drains = phase_ == Phase::kDrain;
  const std::atomic<std::uint32_t>& word = drains ? round.done : round.arrived;
  const std::uint32_t value = drains ? all_done_[number % kRounds] : ring_.all_arrived(number);
  round.sleepers.fetch_add(1);
  const std::uint32_t seen = word.load();
  if (seen != value && (seen & kAborted) == 0) sleep_while(word, seen, mpi_.patience(), hub().reach());
  round.sleepers.fetch_sub(1);
}

bool SpreadGroup::is_excused(std::uint64_t number, std::size_t rank) const {
  if (geography_.is_here(static_cast<int>(rank))) return false;
  const std::size_t reader = static_cast<std::size_t>(geography_.handler(geography_.here, rank));
  return ring_.post(number, reader).number.load(std::memory_order_acquire) < number;
}

std::vector<int> SpreadGroup::owing() const {
  std::vector<int> all;
  for (const Slot& slot : slots_)
    for (const int peer : slot.peers)
      if (std::find(all.begin(), all.end(), peer) == all.end()) all.push_back(peer);
  // My own messages are done: someone here does not move on, or waits for messages itself.
  if (all.empty())
    for (const int rank : geography_.local()) {
      const int member = ring_.members[static_cast<std::size_t>(rank)];
      if (rank != rank_ && hub().board().read(member).stage != Board::Stage::kWaiting) all.push_back(member);
    }
  if (all.empty())
    std::copy_if(ring_.members.begin(), ring_.members.end(), std::back_inserter(all),
                 [&](int member) { return !hub().is_local(member); });
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace weft::comm
