// The threads that share the work of one processor's instructions. The processor's thread is worker 0.
//
// A job has one share for every worker. A worker starts with its share and then runs shares that no thread has started.
// So a job waits for a thread that the system does not schedule only if that thread has started a share. If these waits
// cost more than sharing saves, the processor's thread runs all shares alone for a while. The result of a share does
// not depend on the thread that runs it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "base/index.h"

namespace weft {

class TraceLog;

// Whether sharing is worth its waits. Times in nanoseconds of one clock.
class SharingBalance {
 public:
  explicit SharingBalance(int workers) : others_(workers - 1) {}

  bool alone(std::int64_t now) const { return now < alone_until_; }

  // After a shared job. `worked`: what the processor's thread spent on its shares. `lost`: how long it then waited for
  // threads that were not running.
  void add(std::int64_t worked, std::int64_t lost, std::int64_t now);

 private:
  const std::int64_t others_;
  std::int64_t saved_ = 0, lost_ = 0, since_ = 0;  // in about the last kWindow
  std::int64_t alone_until_ = 0;
};

class Workers {
 public:
  // `spins`: those who wait look again for a while before they sleep; for when every worker has a core to itself.
  // `prepare` runs once on every worker's own thread before the constructor returns: what a thread makes for itself is
  // then there before the first job. RunError if the system gives no more threads.
  explicit Workers(int size, bool spins = true, void (*prepare)() = nullptr);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return size_; }

  // Where the workers note their shares of each job; null: nowhere. Not during a job.
  void trace_to(TraceLog* log) { trace_ = log; }

  // Memory of each worker's own for the length of one instruction. Kernels say how much they need while they are bound.
  void reserve(std::size_t bytes);
  std::int64_t scratch_bytes() const { return static_cast<std::int64_t>(scratch_bytes_) * size_; }  // of all workers
  std::byte* scratch(int worker) const { return scratch_[at(worker)].get(); }

  // Calls fn(share) for share 0 … size - 1, each on the worker of that number unless it is late, and waits for all. No
  // call may wait for another. What one of them throws is thrown here. Not reentrant; allocates nothing.
  template <class Fn>
  void run(const Fn& fn) {
    if (size_ == 1) return fn(0);
    run_job({[](const void* f, int share) { (*static_cast<const Fn*>(f))(share); }, &fn});
  }

 private:
  struct Job {
    void (*call)(const void* fn, int share) = nullptr;
    const void* fn = nullptr;
  };
  struct alignas(64) ShareSlot {              // of a share; one cache line each: nobody disturbs the others
    std::atomic<std::uint32_t> begun = 0;     // the last round in which a thread took the share
    std::atomic<std::uint32_t> finished = 0;  // and in which it was finished
    std::atomic<int> runner = 0;              // the worker that took it
    std::exception_ptr error;
  };

  ShareSlot& slot(int share) const { return slots_[at(share)]; }
  void run_job(const Job& job);
  void run_shared(const Job& job, std::int64_t begin);
  void serve(int worker);
  bool takes(int share, int worker, std::uint32_t round);
  void run_taken(int share, int worker, std::uint32_t round);
  void attempt(const Job& job, int share, int worker);
  void rethrow();
  void stop();
  bool spin_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) const;
  std::int64_t wait_for(int share, std::uint32_t round);
  std::int64_t cpu_time_of(int worker);

  const int size_;
  const bool spins_;
  Job job_;
  SharingBalance balance_;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;  // of the job; the last one ends the threads
  std::atomic<bool> ends_ = false;
  std::unique_ptr<ShareSlot[]> slots_;
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t scratch_bytes_ = 0;
  std::vector<std::unique_ptr<std::byte[], Free>> scratch_;
  TraceLog* trace_ = nullptr;
  std::vector<std::thread> threads_;
};

// From item `begin` to `end`: a worker's share of `items`, in whole `grain`s; the shares differ by one grain at most.
struct Share {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};
Share share_of(std::int64_t items, int worker, int workers, std::int64_t grain = 1);

// The cores that this process may use for itself: those of its mask, shared with the other processes of the host that
// do the same, of which there are `processes` in all, wherever their masks overlap.
int usable_cores(int processes = 1);

}  // namespace weft
