// The memory that the processors of one host share in addition to their buffers: one block with the progress board, the
// abort flag and the first failure, and the rings of all groups.
//
// The block consists of zeros and offsets, so that threads use it directly and processes may map it at any address.
// Member lists stay for the life of the block; a ring that all its members have left is reused by the next group of the
// same members. Locks: the block's mutex guards lists, rings and the failure; it is robust, so that a process may die
// while it holds the mutex.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <pthread.h>

#include "base/index.h"
#include "comm/board.h"
#include "comm/shared/futex.h"
#include "comm/shared/ring.h"
#include "comm/wire.h"

namespace weft::comm {

class SharedBlock {
 public:
  // Address space for the block of that many processors; memory is used as groups are joined.
  static std::size_t reserve(int processors);
  // Makes a block of zeros a block: once, before anyone else looks at it.
  static void prepare(void* block);

  // `local`: the processors that share the block. Reach::kProcesses: each of them is a process.
  SharedBlock(std::shared_ptr<void> block, int processors, std::vector<ProcessorId> local, Reach reach);

  int size() const { return processors_; }
  Reach reach() const { return reach_; }
  const std::vector<ProcessorId>& local() const { return local_; }
  bool is_local(ProcessorId processor) const { return is_local_[processor]; }
  Board& board() { return board_; }

  // The ring of the next join of that list by the member of that rank; none if the wire is aborted.
  std::optional<Ring> meet(std::size_t rank, const std::vector<ProcessorId>& members);
  void leave(const Ring& ring);

  // Marks the processor as touching buffers of its peers, until end_work. False if the wire is aborted: then do not.
  bool begin_work(ProcessorId processor);
  void end_work(ProcessorId processor) { flag(processor).working.store(0); }
  bool works(ProcessorId processor) const { return flag(processor).working.load() != 0; }
  // A processor that is gone does not work any more, even if its flag says so.
  void set_gone(ProcessorId processor) { flag(processor).gone.store(1); }
  bool gone(ProcessorId processor) const { return flag(processor).gone.load() != 0; }

  bool aborted() const { return head().aborted.load() != 0; }
  // The first failure stays. With `reports`, the process of that failure also prints the report. Returns once nobody
  // works.
  void abort(const Failure& failure, bool reports);
  Failure failure() const;  // of the abort
  void wait_for_workers() const;
  // True for exactly one process of the host, every time that it asks: the process that reports the abort.
  bool claims_report();
  std::uint32_t reporter() const { return head().reporter.load(); }  // its process number, kOtherHost or 0
  // True for exactly one caller: the one that sends the abort to the other hosts.
  bool claims_broadcast() { return head().announced.exchange(1) == 0; }
  // For an abort of another host, which also reports it.
  void abort_from_other_host(const Failure& failure);

  // Notes what a processor of another host did last.
  void message(ProcessorId processor, Collective what, std::uint32_t list, std::size_t bytes, std::string_view label);
  ProcessorStatus status(ProcessorId processor) const;  // from the board
  std::size_t bytes() const;                            // used so far

 private:
  static constexpr std::size_t kFailureBytes = 8 << 10;
  struct Head {
    pthread_mutex_t mutex;
    std::atomic<std::uint32_t> aborted, announced, reporter;  // reporter: a process, or 0
    std::uint64_t used;                                       // bytes of the block that are given out
    std::uint64_t first_list;                                 // places; 0 is none
    std::uint32_t lists;
    std::uint32_t failure_bytes;
    char failure[kFailureBytes];  // as bytes
  };
  struct List;
  struct RingHead;
  struct alignas(64) Flag {
    std::atomic<std::uint32_t> working, gone;
  };
  class Lock;

  Head& head() const { return *reinterpret_cast<Head*>(block_.get()); }
  Flag& flag(ProcessorId processor) const;
  template <class T>
  T* at(std::uint64_t place) const {
    return place == 0 ? nullptr : reinterpret_cast<T*>(static_cast<std::byte*>(block_.get()) + place);
  }
  std::uint64_t give(std::size_t bytes);
  List& list_of_members(const std::vector<ProcessorId>& members);
  RingHead& open_ring(List& list, std::size_t rank);
  Ring view(const List& list, RingHead& ring) const;
  template <class Visit>
  void for_every_ring(Visit visit) const;

  const std::shared_ptr<void> block_;
  const int processors_;
  const std::vector<ProcessorId> local_;
  Indexed<ProcessorId, bool> is_local_;
  const Reach reach_;
  Board board_;
};

}  // namespace weft::comm
