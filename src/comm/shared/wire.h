// SharedWire: a wire whose processors, or at least the processors of one host, share memory. Their groups use a
// SharedBlock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/index.h"
#include "comm/shared/shared_block.h"
#include "comm/wire.h"

namespace weft::comm {

class SharedWire : public Wire {
 public:
  int size() const override { return block_.size(); }
  std::unique_ptr<Group> join(ProcessorId processor, const std::vector<ProcessorId>& members) override;
  void abort(const Failure& failure) override;
  std::vector<ProcessorStatus> report() const override;
  std::size_t overhead_bytes() const override { return sizeof *this + block_.bytes(); }

  // For the groups.
  SharedBlock& block() { return block_; }
  bool spins() const { return spins_; }
  // Sends the abort to processors that do not share the block.
  virtual void spread_abort() {}
  // Throws the failure of an aborted wire, which ended this call, once nobody touches the buffers of others any more.
  [[noreturn]] void throw_aborted(Call call);

  // An address in the memory of `processor` as a number that means the same in every process that shares the memory,
  // and back to a pointer of this process.
  std::uint64_t place_of(ProcessorId processor, const void* data) const {
    return reinterpret_cast<std::uintptr_t>(data) - bases_[processor];
  }
  std::byte* reach(ProcessorId processor, std::uint64_t place) const {
    return reinterpret_cast<std::byte*>(bases_[processor] + place);
  }
  virtual ProcessorStatus status(ProcessorId processor) const { return block_.status(processor); }
  // InternalError if peers cannot reach the bytes.
  virtual void check_reach(ProcessorId, const void*, std::size_t) const {}

  // Advances what needs this processor besides the group that waits. A waiter calls it again and again.
  virtual void progress() {}
  // The longest time that a waiter may sleep between two calls of progress.
  virtual std::chrono::nanoseconds patience() const { return std::chrono::nanoseconds::max(); }

 protected:
  // spins: there is a core for every processor of the host.
  SharedWire(SharedBlock block, bool spins)
      : block_(std::move(block)), spins_(spins), bases_(static_cast<std::size_t>(block_.size())) {}

  virtual std::unique_ptr<Group> make_group(Ring ring, int rank);

  SharedBlock block_;
  const bool spins_;
  Indexed<ProcessorId, std::uintptr_t>
      bases_;  // by processor: where its memory begins in this process; 0: an address is a place
};

// How many cores this process may use. Containers and launchers may allow fewer than the machine has.
int cores();

}  // namespace weft::comm
