// A group whose members share memory. start publishes an entry; wait runs chunks of the common work, its own share first and then what
// late peers have left, and sleeps only while somebody is missing or still at work.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/shares.h"
#include "comm/shared/ring.h"
#include "comm/shared/wire.h"

namespace weft::comm {

class SharedGroup : public Group {
 public:
  SharedGroup(SharedWire& wire, Ring ring, int rank);
  // With collectives in flight it aborts the wire: the peers must not touch buffers that are about to go.
  ~SharedGroup() override;

  int size() const override { return static_cast<int>(ring_.members.size()); }
  int rank() const override { return rank_; }
  Ticket start(Collective what, ConstBuffer in, Buffer out, const Args& args) override;
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(std::string_view reason) override { wire_.abort(reason); }

 protected:
  using Clock = std::chrono::steady_clock;

  // The clock of one wait; read only once waiting gets long.
  struct Timer {
    std::chrono::nanoseconds limit;
    Clock::time_point begin{};
  };

  // Completes a request that is about to be posted, and tells of an entry those who do not share the memory.
  virtual void complete(Request&) {}
  virtual void announce(std::uint64_t) {}
  virtual void finish(std::uint64_t number, Timer& timer);
  void arrive(std::uint64_t number);
  void read_entries(std::uint64_t number);
  void check_agreement(std::uint64_t number);
  bool is_small() const { return joint_.count * size_of(joint_.dtype) <= kInlineBytes; }
  void run_small(std::uint64_t number);
  void work(std::uint64_t number, std::uint32_t chunks);
  void finished(std::uint64_t number);
  // RunError if the wire is aborted or the time is over.
  void await_members(std::uint64_t number, Timer& timer);
  void await_chunks(std::uint64_t number, Timer& timer);
  void sleep_until(std::uint64_t number, const std::atomic<std::uint32_t>& word, std::uint32_t value, Timer& timer);
  template <class Reached>
  bool spin_until(Reached reached) const;
  // The processors whose messages are missing, when all have come and none is at work.
  virtual std::vector<int> owing() const { return {}; }
  // Whether the member's entry may have come to another one of this host that has not come itself.
  virtual bool is_excused(std::uint64_t, std::size_t) const { return false; }
  [[noreturn]] void give_up(std::uint64_t number, const Timer& timer);
  [[noreturn]] void fail(std::uint64_t number, const std::string& what, const std::string& fix);  // for all
  std::string place(std::uint64_t number) const;                                                  // who waits, in what

  void say_waiting(std::uint64_t number);

  const Request& request(std::uint64_t number) const {
    return ring_.entry(number, static_cast<std::size_t>(rank_)).request;
  }
  SharedBlock& block() const { return wire_.block(); }
  int processor() const { return ring_.members[static_cast<std::size_t>(rank_)]; }

  SharedWire& wire_;
  const Ring ring_;
  const int rank_;
  std::uint64_t started_ = 0, finished_ = 0;  // numbers of collectives, counted from 1
  std::array<std::string_view, kRounds> labels_;
  std::array<std::uint32_t, kRounds> all_done_{};  // the value of each round's `done` when its collective is over

  Joint joint_;
  std::vector<const std::byte*> in_;  // what joint_ points to
  std::vector<std::byte*> out_;
  std::vector<int> source_;
  Pointers pointers_;
};

}  // namespace weft::comm
