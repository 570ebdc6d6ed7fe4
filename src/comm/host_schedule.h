// A collective between hosts as items, each with a list of actions: messages and local work.
//
// An item is a range of the buffers. On every host one member handles it for all members of the host; all members
// choose the same member. The handler reads their inputs and writes their outputs through shared memory, and exchanges
// messages with the handlers of the same item on other hosts. So each byte is sent to a host once, for any number of
// members on it. A reduction goes along the runs of consecutive ranks on one host, in rank order. The result comes back
// from host to host. Each host sends and receives 2 x bytes, for any number of hosts. Items are independent of each
// other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/index.h"
#include "comm/shares.h"

namespace weft::comm {

// Which members live together. Hosts are numbered by their lowest rank.
struct HostMap {
  HostMap(const std::vector<int>& host_of_member, int rank);

  struct Run {
    int host = 0, first = 0, last = 0;  // ranks, last included
  };
  std::vector<int> host;                  // by rank
  std::vector<std::vector<int>> members;  // by host: ranks
  std::vector<Run> runs;
  int rank = 0, here = 0;  // mine

  int hosts() const { return static_cast<int>(members.size()); }
  int handler(int host, std::size_t item) const {
    const std::vector<int>& all = members[at(host)];
    return all[item % all.size()];
  }
  const std::vector<int>& local() const { return members[at(here)]; }
  bool is_here(int rank) const { return host[at(rank)] == here; }
};

struct Action {
  enum class Kind : std::uint8_t {
    kSettle,    // nothing, after all messages before it are done; so are all kinds of work below
    kSend,      // data to peer
    kReceive,   // data from peer
    kFold,      // the inputs of a run onto what the staging buffer holds
    kFinish,    // the same for the last run, into the outputs
    kSpread,    // a range of my own output to the other outputs here
    kGather,    // an input to all outputs here
    kStage,     // an input into the staging buffer
    kUnstage,   // the staging buffer to an output
    kPermute,   // the moves between members here
    kExchange,  // with a peer here
  };
  Kind kind = Kind::kSettle;
  int peer = -1;          // a rank
  std::uint32_t tag = 0;  // of a message, counted from the receiver's first
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::size_t at = 0, where = 0;  // work: offsets in the inputs and in the outputs, or in the staging buffer
  int run = -1;
};

class HostSchedule {
 public:
  explicit HostSchedule(const HostMap& hosts) : hosts_(hosts), source_(hosts.local().size()) {}

  // Bytes of an item's staging buffer.
  static constexpr std::size_t kStaging = 256 << 10;
  // Items that a member works on at a time.
  static constexpr std::size_t kInHand = 4;

  // Message tags that the largest collective of that kind and count needs.
  std::uint32_t tags(Collective what, DType dtype, std::size_t count) const;
  // Items that this host has, and those that I handle, for all of which steps() can be asked.
  std::size_t items_here(const Joint& joint) const;
  std::size_t my_items(const Joint& joint) const;
  // The steps of my k-th item, with that staging buffer; `steps` is emptied first.
  void actions(const Joint& joint, std::size_t k, std::byte* staging, std::vector<Action>& actions) const;
  // Does a step of work.
  void work(const Joint& joint, const Action& action, std::byte* staging, Pointers& pointers);

 private:
  struct Cut {
    std::size_t chunks = 0, items = 0, unit = 0;  // chunks of a block, all items, bytes of a chunk
  };
  Cut cut(Collective what, DType dtype, std::size_t count) const;
  Cut cut(const Joint& joint) const { return cut(joint.what, joint.dtype, joint.count); }

  void reduce_actions(const Joint& joint, std::size_t item, std::byte* staging, std::vector<Action>& actions) const;
  void result_actions(const Joint& joint, std::size_t item, std::size_t offset, std::size_t bytes, std::byte* staging,
                      std::vector<Action>& actions) const;
  void gather_actions(const Joint& joint, std::size_t item, std::vector<Action>& actions) const;
  void permute_actions(const Joint& joint, std::size_t item, std::byte* staging, std::vector<Action>& actions) const;
  void exchange_actions(const Joint& joint, std::size_t k, std::byte* staging, std::vector<Action>& actions) const;

  void permute_here(const Joint& joint, const Action& action, Pointers& pointers);

  const HostMap& hosts_;
  std::vector<int> source_;  // room for permute_here
};

}  // namespace weft::comm
