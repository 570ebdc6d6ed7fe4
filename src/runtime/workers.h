// The threads that share the work of one processor's instructions. The processor's own thread is worker 0.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace weft {

class TraceLog;

class Workers {
 public:
  // `spins`: those who wait look again for a while before they sleep; for when every worker has a core to itself.
  // RunError if the system gives no more threads.
  explicit Workers(int size, bool spins = true);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int size() const { return size_; }

  // Where the workers note their shares of each job; null: nowhere. Not during a job.
  void trace_to(TraceLog* log) { trace_ = log; }

  // Memory of each worker's own for the length of one instruction. Kernels say how much they need while they are bound.
  void reserve(std::size_t bytes);
  std::byte* scratch(int worker) const { return scratch_[static_cast<std::size_t>(worker)].get(); }

  // Calls fn(worker) on every worker and waits for all. What one of them throws is thrown here. Not reentrant; allocates
  // nothing.
  template <class Fn>
  void run(const Fn& fn) {
    if (size_ == 1) return fn(0);
    run_job({[](const void* f, int worker) { (*static_cast<const Fn*>(f))(worker); }, &fn});
  }

 private:
  struct Job {
    void (*call)(const void* fn, int worker) = nullptr;
    const void* fn = nullptr;
  };
  struct alignas(64) Seat {  // one cache line each: nobody disturbs the others
    std::atomic<std::uint32_t> finished = 0;
    std::exception_ptr error;
  };

  void run_job(const Job& job);
  void serve(int worker);
  void attempt(const Job& job, int worker, Seat& seat);
  void wait_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) const;

  const int size_;
  const bool spins_;
  Job job_;
  alignas(64) std::atomic<std::uint32_t> round_ = 0;  // of the job; the last one ends the threads
  std::atomic<bool> ends_ = false;
  std::unique_ptr<Seat[]> seats_;
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
