// What the wires have in common whose processors (or those of one host) share memory: groups that meet in a block.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "comm/shared/shared_block.h"
#include "comm/wire.h"

namespace weft::comm {

class SharedWire : public Wire {
 public:
  int size() const override { return block_.size(); }
  std::unique_ptr<Group> join(int processor, const std::vector<int>& members) override;
  void abort(std::string_view reason) override;
  std::string report() const override;
  std::size_t overhead_bytes() const override { return sizeof *this + block_.bytes(); }

  // For the groups.
  SharedBlock& block() { return block_; }
  bool spins() const { return spins_; }
  // Throws the RunError of an aborted wire, once nobody touches the buffers of others any more.
  // Tells those whom the abort of the block does not reach.
  virtual void spread_abort() {}
  [[noreturn]] void throw_aborted(const std::string& where);

  // A place in the memory of `processor` as a number that means the same to all who share it, and back to a pointer
  // that is good in this process.
  std::uint64_t place_of(int processor, const void* data) const {
    return reinterpret_cast<std::uintptr_t>(data) - bases_[static_cast<std::size_t>(processor)];
  }
  std::byte* reach(int processor, std::uint64_t place) const {
    return reinterpret_cast<std::byte*>(bases_[static_cast<std::size_t>(processor)] + place);
  }
  virtual std::string describe(int processor) const { return block_.describe(processor); }  // its line of the report
  // InternalError if peers cannot reach the bytes.
  virtual void check_reach(int, const void*, std::size_t) const {}

  // Moves on what needs this processor besides the group that waits; called again and again by whoever waits.
  virtual void progress() {}
  // How long a waiter may sleep between two calls of progress.
  virtual std::chrono::nanoseconds patience() const { return std::chrono::nanoseconds::max(); }

 protected:
  // spins: there is a core for every processor of the host.
  SharedWire(SharedBlock block, bool spins)
      : block_(std::move(block)), spins_(spins), bases_(static_cast<std::size_t>(block_.size())) {}

  virtual std::unique_ptr<Group> make_group(Ring ring, int rank);

  SharedBlock block_;
  const bool spins_;
  std::vector<std::uintptr_t>
      bases_;  // by processor: where its memory begins in this process; 0: an address is a place
};

// The cores that this process may run on, which containers and launchers make fewer than the machine's.
int cores();

}  // namespace weft::comm
