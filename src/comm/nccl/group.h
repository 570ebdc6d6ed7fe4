// A group of the nccl wire for buffers of the host program: fetches, numbers, tests. Programs put their collectives on
// the stream themselves (Communicator).
//
// Before every collective the members exchange what they call, by NCCL too: so a wait tells apart members that have not
// come, members that call something else, and members that do not finish. Buffers of the host are copied through pinned
// memory. Max and min of floats are gathered and reduced on the host, in rank order.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "comm/failure.h"
#include "comm/nccl/communicator.h"

namespace weft::comm {

class NcclWire;

class NcclGroup : public Group {
 public:
  static constexpr std::uint64_t kInFlight = 16;

  // `key`: the same for all members, and of no other group.
  NcclGroup(NcclWire& wire, std::vector<ProcessorId> members, int rank, std::string key);
  ~NcclGroup() override;

  int size() const override { return static_cast<int>(members_.size()); }
  int rank() const override { return rank_; }
  Ticket start(Collective what, ConstBuffer in, Buffer out, const Args& args) override;
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(const Failure& failure) override;

  // For the wire: both by the processor's thread.
  bool launches_next();  // the oldest that is not launched, if that can be
  void poll();

  // For members that ask. From any thread.
  std::uint64_t started() const { return started_.load(); }
  std::uint64_t finished() const { return finished_.load(); }

 private:
  using Clock = std::chrono::steady_clock;
  // What a member calls, as the others read it.
  struct Announced {
    std::uint64_t number, count;
    std::int32_t source, target;
    Collective what;
    Reduce reduce;
    DType dtype;
    std::uint8_t unused[5];
  };
  struct Pending {
    Collective what = Collective::kBarrier;
    ConstBuffer in = {};
    Buffer out = {};
    Args args = {};
    cudaEvent_t came = nullptr, done = nullptr;  // all members have come; the collective is over
    bool is_launched = false, is_agreed = false;
    std::size_t staged = 0;  // bytes of the staging memory that it goes through
  };
  // Memory of the device with as much pinned memory of the host.
  struct Staging {
    std::byte *device = nullptr, *host = nullptr;
    std::size_t bytes = 0;
  };

  Pending& pending(std::uint64_t number) { return in_flight_[number - finished_.load() - 1]; }
  bool begins();
  void launch(std::uint64_t number);
  void launch_data(Pending& pending);
  void launch(const Pending& pending, const Operation& operation);
  std::size_t staged_bytes(const Pending& pending) const;
  bool is_over();
  void check_agreement(std::uint64_t number);
  void copy_back(const Pending& pending);
  bool has_passed(cudaEvent_t event) const;
  Call call_of(const Pending& pending) const;
  Call announced_call(const Pending& pending, std::size_t rank, const Announced& announced) const;
  Announced* announced(std::uint64_t number, bool on_host) const;
  void grow(Staging& staging, std::size_t bytes) const;
  void free(Staging& staging) const;
  [[noreturn]] void give_up(Deadline deadline);
  [[noreturn]] void fail(Failure failure);

  NcclWire& wire_;
  const std::vector<ProcessorId> members_;
  const int rank_;
  const std::string key_;
  const std::uint32_t list_;  // for the board
  std::shared_ptr<Communicator> communicator_;
  std::deque<Pending> in_flight_;
  std::atomic<std::uint64_t> started_ = 0, finished_ = 0;
  std::uint64_t launched_ = 0;
  bool is_staging_used_ = false;
  Staging calls_, staging_;
};

}  // namespace weft::comm
