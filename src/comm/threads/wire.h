// The wire between threads of one process.
//
// Locks: mutex_ guards the meetings and the reason of an abort; start and wait take it only once something failed.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/board.h"
#include "comm/threads/ring.h"
#include "comm/wire.h"

namespace weft::comm {

std::string list_of(const std::vector<int>& processors);  // "0 1 2"

class ThreadsWire : public Wire {
 public:
  explicit ThreadsWire(int processors);

  int size() const override { return board_.size(); }
  std::vector<int> local() const override;
  std::unique_ptr<Group> join(int processor, const std::vector<int>& members) override;
  Arena allocate(int processor, std::size_t bytes) override;
  void abort(std::string_view reason) override;
  std::string report() const override;
  std::size_t overhead_bytes() const override;

  // For the groups.
  Board& board() { return board_; }
  bool aborted() const { return aborted_.load(); }
  bool spins() const { return spins_; }  // there is a core for every processor
  // Throws the RunError of an aborted wire, once nobody touches the buffers of others any more.
  [[noreturn]] void throw_aborted(const std::string& where);
  // Marks the processor as touching buffers of its peers, until end_work. False if the wire is aborted: then do not.
  bool begin_work(int processor);
  void end_work(int processor) { working_[static_cast<std::size_t>(processor)].flag.store(0); }
  bool works(int processor) const { return working_[static_cast<std::size_t>(processor)].flag.load() != 0; }
  std::string describe(int processor) const;  // its line of the report

 private:
  // All joins of one member list: the k-th of every member share a ring.
  struct Meeting {
    std::uint32_t group = 0;
    std::deque<std::shared_ptr<Ring>> open;  // rings that some member has not joined yet
    std::size_t closed = 0;                  // rings that all have joined
    std::vector<std::size_t> joins;          // by rank
  };
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> flag{0};
  };

  std::shared_ptr<Ring> meet(std::size_t rank, const std::vector<int>& members);
  void wait_for_workers() const;

  Board board_;
  std::vector<Flag> working_;
  const bool spins_;
  std::atomic<bool> aborted_{false};

  mutable std::mutex mutex_;
  std::string reason_;
  std::map<std::vector<int>, Meeting> meetings_;
  std::vector<const std::vector<int>*> lists_;  // by group number; keys of meetings_
  std::vector<std::weak_ptr<Ring>> rings_;
};

}  // namespace weft::comm
