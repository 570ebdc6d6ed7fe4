#include "runtime/cuda/peers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/index.h"
#include "comm/nccl/wire.h"

namespace weft::cuda {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kYield{1}, kLook{1};  // spin first; look for failures now and then
constexpr std::chrono::microseconds kPause{20};
constexpr std::chrono::seconds kDrain{2};
constexpr std::chrono::minutes kBindDeadline{10};

class NcclPeers : public Peers, private comm::NcclWire::ProgramProgress {
 public:
  explicit NcclPeers(comm::NcclWire& wire) : wire_(wire) {
    cuda::check(cudaSetDevice(wire.device()), "cudaSetDevice");
    cuda::check(cudaMallocHost(reinterpret_cast<void**>(&words_), sizeof(ProgressWords)), "cudaMallocHost");
    *words_ = {};
    wire_.set_progress(this);
  }
  ~NcclPeers() override {
    wire_.set_progress(nullptr);
    if (!wire_.is_aborted()) cudaFreeHost(words_);  // else the card may still write it
  }

  ProcessorId me() const override { return wire_.me(); }
  int device() const override { return wire_.device(); }
  cudaStream_t stream() const override { return wire_.stream(); }

  Issue collective(const std::vector<ProcessorId>& members, const comm::Operation& operation) override {
    std::shared_ptr<comm::Communicator> communicator = wire_.communicator(members, kBindDeadline);
    if (std::ranges::count(communicators_, communicator) == 0) communicators_.push_back(communicator);
    const comm::Call call{.processor = me(), .what = operation.what, .members = {.processors = members}};
    return [this, communicator, operation, call](cudaStream_t stream) {
      const bool was_put = communicator->launch(operation, stream);
      while (was_put && communicator->state() == comm::Communicator::State::kBusy && !wire_.is_aborted())
        std::this_thread::yield();
      if (wire_.is_aborted()) wire_.throw_aborted(call);
      wire_.check_nccl(*communicator, call);
      internal_check(was_put, "a collective that could not be put on the stream");
    };
  }

  std::uint64_t number_of(const comm::Call& call) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back(call);
    return calls_.size() - 1;
  }
  ProgressWords* progress() const override { return words_; }

  void check() override {
    if (wire_.is_aborted()) wire_.throw_aborted(present().value_or(comm::Call{.processor = me()}));
    for (const std::shared_ptr<comm::Communicator>& each : communicators_)
      wire_.check_nccl(*each, present().value_or(comm::Call{.processor = me()}));
  }

  void wait(cudaStream_t stream, comm::Deadline deadline) override {
    const Clock::time_point begin = Clock::now();
    Clock::time_point looked = begin, since = begin;
    for (std::uint64_t seen = steps();;) {
      const cudaError_t status = cudaStreamQuery(stream);
      if (status == cudaSuccess) return;
      if (status != cudaErrorNotReady) cuda::check(status, "cudaStreamQuery");
      const Clock::time_point now = Clock::now();
      if (now - looked > kLook) {
        looked = now;
        check();
        if (const std::uint64_t steps_now = steps(); steps_now != seen) {
          seen = steps_now;
          since = now;
        }
        if (seen % 2 == 1 && now - since >= deadline.limit) give_up(seen, deadline);
      }
      if (now - begin < kYield) std::this_thread::yield();
      else std::this_thread::sleep_for(kPause);
    }
  }

  bool drains(cudaStream_t stream) override {
    for (const Clock::time_point end = Clock::now() + kDrain; Clock::now() < end; std::this_thread::sleep_for(kLook))
      if (cudaStreamQuery(stream) != cudaErrorNotReady) return true;
    return false;
  }

 private:
  // The card writes the number before it counts the step.
  std::uint64_t steps() const { return *static_cast<volatile unsigned long long*>(&words_->steps); }

  // The collective that the card is at, or was at last.
  std::optional<comm::Call> present() const {
    const std::uint64_t number = *static_cast<volatile unsigned long long*>(&words_->number);
    const std::lock_guard lock(mutex_);
    if (steps() == 0 || number >= calls_.size()) return std::nullopt;
    return calls_[number];
  }

  comm::MemberProgress progress_of_card() const {
    using Stage = comm::ProcessorStatus::Stage;
    const std::uint64_t seen = steps();
    comm::MemberProgress progress{.started = (seen + 1) / 2, .finished = seen / 2, .status = {}};
    if (const std::optional<comm::Call> call = present(); call)
      progress.status = {.processor = me(),
                         .stage = seen % 2 == 1 ? Stage::kWaiting : Stage::kFinished,
                         .what = call->what,
                         .label = call->label,
                         .bytes = call->count * size_of(call->dtype),
                         .calls = progress.started,
                         .members = call->members};
    return progress;
  }
  comm::MemberProgress program_progress() const override { return progress_of_card(); }

  [[noreturn]] void give_up(std::uint64_t seen, comm::Deadline deadline) {
    const comm::Call call = present().value_or(comm::Call{.processor = me()});
    const std::vector<ProcessorId>& members = call.members.processors;
    const std::vector<comm::MemberProgress> all = wire_.ask(members, comm::NcclWire::kProgram);
    const auto begun = (seen + 1) / 2;
    std::vector<ProcessorId> missing, unfinished;
    for (std::size_t r = 0; r < members.size(); ++r) {
      if (members[r] == me()) continue;
      if (all[r].started < begun) missing.push_back(members[r]);
      else if (all[r].finished < begun) unfinished.push_back(members[r]);
    }
    comm::Failure failure{.kind = comm::Failure::Kind::kTimeout,
                          .processor = me(),
                          .calls = {call},
                          .awaited = {.processors = missing.empty() ? unfinished : missing},
                          .awaited_came = missing.empty(),
                          .seconds = std::chrono::duration<double>(deadline.limit).count()};
    for (std::size_t r = 0; r < members.size(); ++r)
      if (std::ranges::count(failure.awaited.processors, members[r]) > 0 && failure.last.size() < comm::kMostStatuses)
        failure.last.push_back(all[r].status.value_or(comm::ProcessorStatus{.processor = members[r]}));
    wire_.abort(failure);
    throw comm::FailureError(failure);
  }

  comm::NcclWire& wire_;
  ProgressWords* words_ = nullptr;
  std::vector<std::shared_ptr<comm::Communicator>> communicators_;
  mutable std::mutex mutex_;
  std::vector<comm::Call> calls_;  // by number
};

}  // namespace

std::unique_ptr<Peers> peers_on(comm::Wire& wire) {
  auto* nccl = dynamic_cast<comm::NcclWire*>(&wire);
  return nccl ? std::make_unique<NcclPeers>(*nccl) : nullptr;
}

std::unique_ptr<comm::Wire> make_nccl_wire(int processors) { return comm::make_nccl_wire(processors); }

std::string describe_nccl() { return comm::describe_nccl(); }

}  // namespace weft::cuda
