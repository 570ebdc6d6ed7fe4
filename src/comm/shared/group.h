// A group whose members share memory. start publishes an entry. wait runs chunks of the common work: first the chunks
// of this member, then chunks that late peers have not started. It sleeps only while a member is missing or still
// working.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.h"
#include "comm/shares.h"
#include "comm/shared/ring.h"
#include "comm/shared/wire.h"

namespace weft::comm {

class SharedGroup : public Group {
 public:
  SharedGroup(SharedWire& wire, Ring ring, int rank);
  // Aborts the wire if collectives are in flight, because the peers must not touch buffers that will be freed.
  ~SharedGroup() override;

  int size() const override { return static_cast<int>(ring_.members.size()); }
  int rank() const override { return rank_; }
  Ticket start(Collective what, ConstBuffer in, Buffer out, const Args& args) override;
  void wait(Ticket ticket, Deadline deadline) override;
  void abort(const Failure& failure) override { wire_.abort(failure); }

 protected:
  using Clock = std::chrono::steady_clock;

  // The clock of one wait. It is first read when the wait gets long.
  struct Timer {
    std::chrono::nanoseconds limit;
    Clock::time_point begin{};
  };

  // Completes a request before it is published.
  virtual void complete(Request&) {}
  // Sends an entry to members that do not share the memory.
  virtual void announce(std::uint64_t) {}
  virtual void finish(std::uint64_t number, Timer& timer);
  void arrive(std::uint64_t number);
  void read_entries(std::uint64_t number);
  void check_agreement(std::uint64_t number);
  bool is_small() const { return joint_.count * size_of(joint_.dtype) <= kInlineBytes; }
  void run_small(std::uint64_t number);
  void work(std::uint64_t number, std::uint32_t chunks);
  void finished(std::uint64_t number);
  // FailureError if the wire is aborted or the time is over.
  void await_members(std::uint64_t number, Timer& timer);
  void await_chunks(std::uint64_t number, Timer& timer);
  void sleep_until(std::uint64_t number, const std::atomic<std::uint32_t>& word, std::uint32_t value, Timer& timer);
  template <class Reached>
  bool spin_until(Reached reached) const;
  // The processors whose messages are missing, if all members have come and none is at work.
  virtual std::vector<ProcessorId> owing() const { return {}; }
  // Whether the entry of the member may be with another member of this host that has not come yet.
  virtual bool is_excused(std::uint64_t, std::size_t) const { return false; }
  [[noreturn]] void give_up(std::uint64_t number, const Timer& timer);
  [[noreturn]] void fail(Failure failure);  // aborts the wire
  // A collective as a member of the group calls it. The label is this processor's.
  Call call_of(std::uint64_t number, std::size_t rank) const;
  Call my_call(std::uint64_t number) const { return call_of(number, at(rank_)); }

  void say_waiting(std::uint64_t number);

  const Request& request(std::uint64_t number) const { return ring_.entry(number, at(rank_)).request; }
  SharedBlock& block() const { return wire_.block(); }
  ProcessorId processor() const { return ring_.members[at(rank_)]; }

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
