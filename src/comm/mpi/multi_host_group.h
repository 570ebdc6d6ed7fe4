// A group whose members are on several hosts. Every host has a ring with the entries of all members. Entries of other
// hosts come as messages; the receiver writes them into the ring. Then small collectives run like between threads,
// large collectives by a schedule.
//
// `advance` makes progress on a collective. Every wait of this processor calls it for all of its groups: otherwise two
// processors that wait for their collectives in different orders would wait for each other.
#pragma once

#include <memory>
#include <vector>

#include "comm/host_schedule.h"
#include "comm/mpi/control_messages.h"
#include "comm/shared/group.h"

namespace weft::comm {

class MpiWire;

class MultiHostGroup : public SharedGroup {
 public:
  MultiHostGroup(MpiWire& wire, Ring ring, int rank, HostMap hosts);
  ~MultiHostGroup() override;

  std::uint64_t list() const { return list_; }
  std::uint64_t sequence() const { return ring_.sequence; }
  void deliver(const ControlMessage& message);
  void advance();

 private:
  enum class Phase : std::uint8_t { kMembers, kWork, kDrain };
  struct Slot {
    std::vector<std::byte> staging;
    std::vector<Action> actions;
    std::size_t next = 0;  // step
    std::vector<MPI_Request> requests;
    std::vector<ProcessorId> peers;  // of the requests
    bool busy = false;
  };

  void complete(Request& request) override;
  void announce(std::uint64_t number) override;
  void finish(std::uint64_t number, Timer& timer) override;
  std::vector<ProcessorId> owing() const override;
  bool is_excused(std::uint64_t number, std::size_t rank) const override;

  void begin(std::uint64_t number);
  bool work_on(std::uint64_t number, Slot& slot);
  bool settled(Slot& slot);
  void post_message(std::uint64_t number, Slot& slot, const Action& action);
  void rest(std::uint64_t number);
  bool give_up_messages();

  MpiWire& mpi_;
  const HostMap hosts_;
  HostSchedule schedule_;
  const std::uint64_t list_;
  Phase phase_ = Phase::kMembers;
  std::size_t begun_ = 0, ended_ = 0, mine_ = 0;  // items of the collective at hand
  std::vector<Slot> slots_;
  int looks_ = 0;  // since something has moved
};

// The same on all hosts.
std::uint64_t hash_of(const std::vector<ProcessorId>& members);

}  // namespace weft::comm
