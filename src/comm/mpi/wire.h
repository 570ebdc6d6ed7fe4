// The wire between ranks of an MPI job. Ranks of one host communicate through shared memory, like threads; MPI connects
// them and carries the messages between hosts.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/index.h"
#include "comm/mpi/calls.h"
#include "comm/mpi/memory.h"
#include "comm/mpi/control_messages.h"
#include "comm/shared/wire.h"

namespace weft::comm {

// What the ranks of a job know of each other before they talk.
struct Ranks {
  explicit Ranks(int processors);  // 0: all
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  bool one_host() const { return static_cast<int>(local.size()) == size; }

  // The wire's ranks, and those on this host. Freeing is a call of all ranks, which after a failure are not all there:
  // a wire of one host frees both when it is made, one of several hosts never frees `all`.
  MPI_Comm all = MPI_COMM_NULL, here = MPI_COMM_NULL;
  int size = 0;
  ProcessorId me;
  std::vector<ProcessorId> local;           // processors on this host
  Indexed<ProcessorId, ProcessorId> host;   // by processor: the lowest processor of its host
  Indexed<ProcessorId, std::string> names;  // by processor: its host's name
};

class MultiHostGroup;

class MpiWire : public SharedWire {
 public:
  static std::unique_ptr<MpiWire> make(int processors);
  ~MpiWire() override;

  std::vector<ProcessorId> local() const override { return {ranks_->me}; }
  int on_host() const override { return static_cast<int>(ranks_->local.size()); }
  PeerMemory* peer_memory(ProcessorId processor) override;
  std::size_t overhead_bytes() const override;

  void check_reach(ProcessorId processor, const void* data, std::size_t bytes) const override;
  ProcessorStatus status(ProcessorId processor) const override;
  void progress() override;
  std::chrono::nanoseconds patience() const override;
  void spread_abort() override;

  // For groups on several hosts.
  MPI_Comm ranks() const { return ranks_->all; }
  ControlMessages& messages() { return *messages_; }
  // Held around everything that calls MPI.
  std::unique_lock<std::recursive_mutex> lock() { return std::unique_lock(mutex_); }
  std::uint32_t take_tags(std::uint32_t count);
  void enter(MultiHostGroup& group);
  void leave(MultiHostGroup& group);
  // Leaves memory that a message may still touch to it, and all arenas as well.
  template <class Memory>
  void keep_memory(Memory memory) {
    new Memory(std::move(memory));
    for (const Mapping& mapping : peers_) new Mapping(mapping);
  }

 protected:
  std::unique_ptr<Group> make_group(Ring ring, int rank) override;

 private:
  struct Parts;  // what make brings together
  explicit MpiWire(Parts parts);

  const std::unique_ptr<Ranks> ranks_;
  const std::shared_ptr<Heap> heap_;
  std::vector<Mapping> peers_;  // the memory of all on this host

  // If there are several hosts.
  void read(const ControlMessage& message);
  std::recursive_mutex mutex_;
  std::unique_ptr<ControlMessages> messages_;
  std::vector<MultiHostGroup*> spread_;
  std::vector<ControlMessage> early_;  // for groups that are not joined here yet
  std::uint32_t next_tag_ = ControlMessages::kTag + 1;
};

}  // namespace weft::comm
