#include "comm/nccl/group.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "comm/nccl/wire.h"
#include "comm/reduce.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::chrono::microseconds kSpin{100}, kPause{50};

std::size_t bytes_of(const ConstBuffer& buffer) { return buffer.count * size_of(buffer.dtype); }

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

NcclGroup::NcclGroup(NcclWire& wire, std::vector<ProcessorId> members, int rank, std::string key)
    : wire_(wire), members_(std::move(members)), rank_(rank), key_(std::move(key)), list_(wire.number_of(members_)) {
  communicator_ = std::make_shared<Communicator>(wire.nccl(), wire.cuda(), wire.device(), size(), rank_);
  wire_.add(communicator_);
  wire_.enter(key_, this);
}

NcclGroup::~NcclGroup() {
  wire_.leave(key_, this);
  if (!in_flight_.empty()) {
    for (Pending& each : in_flight_) each.args.label = {};  // their texts may be gone already
    wire_.abort({.kind = Failure::Kind::kGroupLeft, .processor = wire_.me(), .calls = {call_of(in_flight_.front())}});
  }
  if (wire_.is_aborted() && !(wire_.wait_for_abort() && wire_.drains())) return;  // the card may still use the rest
  for (Pending& each : in_flight_)
    for (const cudaEvent_t event : {each.came, each.done})
      if (event) wire_.cuda().destroy_event(event);
  free(calls_);
  free(staging_);
}

void NcclGroup::abort(const Failure& failure) { wire_.abort(failure); }

Ticket NcclGroup::start(Collective what, ConstBuffer in, Buffer out, const Args& args) {
  check_call(*this, what, in, out, args);
  if (in_flight_.size() == kInFlight) wait({finished_.load() + 1}, kStartDeadline);
  Pending pending{.what = what, .in = in, .out = out, .args = args};
  if (wire_.is_aborted()) {
    Call call = call_of(pending);
    call.step = Call::Step::kStart;
    wire_.throw_aborted(std::move(call));
  }
  wire_.check_cuda(wire_.cuda().set_device(wire_.device()), "cudaSetDevice");
  in_flight_.push_back(pending);
  const std::uint64_t number = started_.load() + 1;
  wire_.board().started(wire_.me(), what, list_, bytes_of(in), args.label);
  started_.store(number);
  wire_.queue(*this);
  wire_.progress();
  return {number};
}

void NcclGroup::wait(Ticket ticket, Deadline deadline) {
  if (ticket.number > started_.load())
    throw InternalError(str("wait for collective ", ticket.number, " of ", started_.load()));
  wire_.check_cuda(wire_.cuda().set_device(wire_.device()), "cudaSetDevice");
  const Clock::time_point begin = Clock::now();
  for (bool has_said = false; finished_.load() < ticket.number;) {
    const auto oldest = [&]() -> const Pending& { return in_flight_.front(); };
    if (wire_.is_aborted()) wire_.throw_aborted(call_of(oldest()));
    wire_.progress();
    if (finished_.load() >= ticket.number) break;
    const auto waited = Clock::now() - begin;
    if (waited >= deadline.limit) give_up(deadline);
    if (waited <= kSpin) {
      std::this_thread::yield();
      continue;
    }
    if (!std::exchange(has_said, true))
      wire_.board().waiting(wire_.me(), oldest().what, list_, bytes_of(oldest().in), oldest().args.label);
    wire_.check_nccl(*communicator_, call_of(oldest()));
    std::this_thread::sleep_for(kPause);
  }
}

bool NcclGroup::launches_next() {
  if (!begins() || (is_staging_used_ && staged_bytes(pending(launched_ + 1)) > 0)) return false;
  launch(launched_ + 1);
  return true;
}

// Ends what is over.
void NcclGroup::poll() {
  while (!in_flight_.empty() && is_over()) {
    Pending& mine = in_flight_.front();
    if (mine.staged > 0) copy_back(mine);
    for (const cudaEvent_t event : {mine.came, mine.done}) wire_.cuda().destroy_event(event);
    in_flight_.pop_front();
    finished_.store(finished_.load() + 1);
    wire_.board().finished(wire_.me());
  }
}

// Whether NCCL takes the next collective; without waiting for it.
bool NcclGroup::begins() {
  return wire_.begin(*communicator_, members_, key_) && communicator_->state() == Communicator::State::kReady;
}

NcclGroup::Announced* NcclGroup::announced(std::uint64_t number, bool on_host) const {
  std::byte* begin = on_host ? calls_.host : calls_.device;
  return reinterpret_cast<Announced*>(begin + number % kInFlight * members_.size() * sizeof(Announced));
}

void NcclGroup::launch(std::uint64_t number) {
  Pending& next = pending(number);
  const CudaCalls& cuda = wire_.cuda();
  const cudaStream_t stream = wire_.stream();
  for (cudaEvent_t* event : {&next.came, &next.done})
    wire_.check_cuda(cuda.create_event(event), "cudaEventCreateWithFlags");
  if (size() > 1) {
    const std::size_t all = members_.size() * sizeof(Announced);
    grow(calls_, kInFlight * all);
    Announced* mine = announced(number, true) + rank_;
    *mine = {.number = number,
             .count = next.in.count,
             .source = next.args.source,
             .target = next.args.target,
             .what = next.what,
             .reduce = next.args.reduce,
             .dtype = next.in.dtype,
             .unused = {}};
    Announced* there = announced(number, false);
    wire_.check_cuda(cuda.copy(there + rank_, mine, sizeof *mine, stream), "cudaMemcpyAsync");
    const Operation exchange{.what = Collective::kAllGather,
                             .in = there + rank_,
                             .out = there,
                             .in_count = sizeof *mine,
                             .out_count = all,
                             .dtype = DType::kU8};
    launch(next, exchange);
    wire_.check_cuda(cuda.copy(announced(number, true), there, all, stream), "cudaMemcpyAsync");
  }
  wire_.check_cuda(cuda.record_event(next.came, stream), "cudaEventRecord");
  launch_data(next);
  if (next.staged > 0) {  // results, or what the host reduces
    const std::size_t from = aligned(bytes_of(next.in));
    wire_.check_cuda(cuda.copy(staging_.host + from, staging_.device + from, next.staged - from, stream),
                     "cudaMemcpyAsync");
  }
  wire_.check_cuda(cuda.record_event(next.done, stream), "cudaEventRecord");
  next.is_launched = true;
  ++launched_;
}

// Through the staging memory go buffers of the host, operands that would be overwritten too early, and what the host
// reduces.
std::size_t NcclGroup::staged_bytes(const Pending& pending) const {
  if (pending.what == Collective::kBarrier || pending.in.count == 0) return 0;
  const std::size_t in = bytes_of(pending.in), out = bytes_of(pending.out);
  if (loses_nan(pending.what, pending.in.dtype, pending.args.reduce)) return aligned(in) + in * members_.size();
  const bool is_here = wire_.cuda().is_on_device(pending.in.data) && wire_.cuda().is_on_device(pending.out.data);
  const bool is_safe = !needs_scratch({.what = pending.what,
                                       .in = pending.in.data,
                                       .out = pending.out.data,
                                       .in_count = pending.in.count,
                                       .source = pending.args.source,
                                       .target = pending.args.target});
  return is_here && is_safe ? 0 : aligned(in) + out;
}

void NcclGroup::launch_data(Pending& next) {
  const CudaCalls& cuda = wire_.cuda();
  Operation operation{.what = next.what,
                      .in = next.in.data,
                      .out = next.out.data,
                      .in_count = next.in.count,
                      .out_count = next.out.count,
                      .dtype = next.in.dtype,
                      .reduce = next.args.reduce,
                      .source = next.args.source,
                      .target = next.args.target};
  if (next.staged = staged_bytes(next); next.staged > 0) {
    is_staging_used_ = true;
    grow(staging_, next.staged);
    const bool is_here = cuda.is_on_device(next.in.data);
    if (!is_here) std::memcpy(staging_.host, next.in.data, bytes_of(next.in));
    wire_.check_cuda(
        cuda.copy(staging_.device, is_here ? next.in.data : staging_.host, bytes_of(next.in), wire_.stream()),
        "cudaMemcpyAsync");
    operation.in = staging_.device;
    operation.out = staging_.device + aligned(bytes_of(next.in));
    if (loses_nan(next.what, next.in.dtype, next.args.reduce)) {
      operation.what = Collective::kAllGather;
      operation.out_count = operation.in_count * members_.size();
    }
  }
  launch(next, operation);
}

// Returns when NCCL has put the operation on the stream.
void NcclGroup::launch(const Pending& pending, const Operation& operation) {
  if (!communicator_->launch(operation, wire_.stream())) {
    wire_.check_nccl(*communicator_, call_of(pending));
    throw InternalError(str(operation.what, " could not be put on the stream"));
  }
  while (communicator_->state() == Communicator::State::kBusy && !wire_.is_aborted()) std::this_thread::yield();
  if (wire_.is_aborted()) wire_.throw_aborted(call_of(pending));
  wire_.check_nccl(*communicator_, call_of(pending));
}

bool NcclGroup::has_passed(cudaEvent_t event) const {
  const cudaError_t status = wire_.cuda().query_event(event);
  if (status == cudaErrorNotReady) return false;
  wire_.check_cuda(status, "cudaEventQuery");
  return true;
}

// The oldest that is in flight.
bool NcclGroup::is_over() {
  Pending& mine = in_flight_.front();
  if (!mine.is_launched) return false;
  if (!mine.is_agreed && !has_passed(mine.came)) return false;
  if (!mine.is_agreed) check_agreement(finished_.load() + 1);
  mine.is_agreed = true;
  return has_passed(mine.done);
}

// From the staging memory, which is free again then.
void NcclGroup::copy_back(const Pending& mine) {
  is_staging_used_ = false;
  std::byte* result = staging_.host + aligned(bytes_of(mine.in));
  if (loses_nan(mine.what, mine.in.dtype, mine.args.reduce)) {
    std::vector<const std::byte*> sources;
    const std::size_t one = bytes_of(mine.in);
    const std::size_t offset = mine.what == Collective::kReduceScatter ? at(rank_) * bytes_of(mine.out) : 0;
    for (std::size_t r = 0; r < members_.size(); ++r) sources.push_back(result + r * one + offset);
    std::byte* target = staging_.host;
    reduce_in_rank_order(mine.in.dtype, mine.args.reduce, sources, {&target, 1}, mine.out.count);
    result = target;
  }
  if (!wire_.cuda().is_on_device(mine.out.data)) {
    std::memcpy(mine.out.data, result, bytes_of(mine.out));
    return;
  }
  wire_.check_cuda(wire_.cuda().copy(mine.out.data, result, bytes_of(mine.out), wire_.stream()), "cudaMemcpyAsync");
  wire_.check_cuda(wire_.cuda().record_event(mine.done, wire_.stream()), "cudaEventRecord");
  while (!has_passed(mine.done) && !wire_.is_aborted()) std::this_thread::yield();
}

// Every member compares all members with rank 0, so that all find the same disagreement.
void NcclGroup::check_agreement(std::uint64_t number) {
  if (size() == 1) return;
  const Announced* all = announced(number, true);
  const auto refuse = [&](std::size_t a, std::size_t b) {
    const Pending& mine = pending(number);
    fail({.kind = Failure::Kind::kDisagreement,
          .processor = wire_.me(),
          .calls = {call_of(mine), announced_call(mine, a, all[a]), announced_call(mine, b, all[b])}});
  };
  const auto agree = [](const Announced& a, const Announced& b) {
    return a.number == b.number && a.what == b.what && a.count == b.count && a.dtype == b.dtype && a.reduce == b.reduce;
  };
  for (std::size_t r = 1; r < members_.size(); ++r)
    if (!agree(all[0], all[r])) refuse(0, r);
  if (all[0].what != Collective::kPermute) return;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    const int me = static_cast<int>(r);
    if (all[r].source >= 0 && all[at(all[r].source)].target != me) refuse(r, at(all[r].source));
    if (all[r].target >= 0 && all[at(all[r].target)].source != me) refuse(r, at(all[r].target));
  }
}

Call NcclGroup::call_of(const Pending& pending) const {
  return {.processor = wire_.me(),
          .what = pending.what,
          .label = std::string(pending.args.label),
          .count = pending.in.count,
          .dtype = pending.in.dtype,
          .reduce = pending.args.reduce,
          .source = pending.args.source,
          .target = pending.args.target,
          .members = {.processors = members_}};
}

Call NcclGroup::announced_call(const Pending& pending, std::size_t rank, const Announced& announced) const {
  return {.processor = members_[rank],
          .what = announced.what,
          .label = std::string(pending.args.label),
          .count = announced.count,
          .dtype = announced.dtype,
          .reduce = announced.reduce,
          .source = announced.source,
          .target = announced.target,
          .members = {.processors = members_}};
}

void NcclGroup::grow(Staging& staging, std::size_t bytes) const {
  if (staging.bytes >= bytes) return;
  free(staging);
  const auto place = [](std::byte*& data) { return reinterpret_cast<void**>(&data); };
  wire_.check_cuda(wire_.cuda().allocate(place(staging.device), bytes), "cudaMalloc");
  wire_.check_cuda(wire_.cuda().allocate_host(place(staging.host), bytes), "cudaMallocHost");
  staging.bytes = bytes;
}

void NcclGroup::free(Staging& staging) const {
  if (staging.device) wire_.cuda().free(staging.device);
  if (staging.host) wire_.cuda().free_host(staging.host);
  staging = {};
}

// The members that have not come, or if all have, those that do not finish.
void NcclGroup::give_up(Deadline deadline) {
  const std::uint64_t number = finished_.load() + 1;
  const std::vector<MemberProgress> all = wire_.ask(members_, key_);
  std::vector<ProcessorId> missing, unfinished;
  for (std::size_t r = 0; r < members_.size(); ++r) {
    if (members_[r] == wire_.me()) continue;
    if (all[r].started < number) missing.push_back(members_[r]);
    else if (all[r].finished < number) unfinished.push_back(members_[r]);
  }
  Failure failure{.kind = Failure::Kind::kTimeout,
                  .processor = wire_.me(),
                  .calls = {call_of(pending(number))},
                  .awaited = {.processors = missing.empty() ? unfinished : missing},
                  .awaited_came = missing.empty(),
                  .seconds = std::chrono::duration<double>(deadline.limit).count()};
  for (std::size_t r = 0; r < members_.size(); ++r)
    if (std::ranges::count(failure.awaited.processors, members_[r]) > 0 && failure.last.size() < kMostStatuses)
      failure.last.push_back(all[r].status.value_or(ProcessorStatus{.processor = members_[r]}));
  fail(std::move(failure));
}

void NcclGroup::fail(Failure failure) {
  wire_.abort(failure);
  throw FailureError(std::move(failure));
}

}  // namespace weft::comm
