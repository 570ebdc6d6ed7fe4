#include "runtime/workers.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/str.h"
#include "runtime/trace.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr int kSpins = 20000;  // some 100 us: longer than what lies between two instructions

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Workers::Workers(int size, bool spins)
    : size_(std::max(1, size)),
      spins_(spins),
      seats_(std::make_unique<Seat[]>(static_cast<std::size_t>(size_))),
      scratch_(static_cast<std::size_t>(size_)) {
  try {
    for (int worker = 1; worker < size_; ++worker) threads_.emplace_back([this, worker] { serve(worker); });
  } catch (const std::system_error& error) {
    this->~Workers();
    throw RunError(
        {.what = str("the system gives no thread for worker ", threads_.size() + 1, " of ", size_, ": ", error.what()),
         .where = "Session",
         .fix = "ask for fewer workers, or raise the limit on threads"});
  }
}

Workers::~Workers() {
  ends_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void Workers::reserve(std::size_t bytes) {
  constexpr std::size_t kAlignment = 4096;
  if (bytes <= scratch_bytes_) return;
  scratch_bytes_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto& memory : scratch_) memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, scratch_bytes_)));
}

void Workers::wait_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) const {
  for (int i = 0; spins_ && i < kSpins; ++i) {
    if (number.load(std::memory_order_acquire) != value) return;
    pause();
  }
  number.wait(value, std::memory_order_acquire);
}

void Workers::attempt(const Job& job, int worker, Seat& seat) {
  const std::int64_t begin = trace_ ? TraceLog::now() : 0;
  try {
    job.call(job.fn, worker);
  } catch (...) {
    seat.error = std::current_exception();
  }
  if (trace_) trace_->add_share(worker, begin);
}

void Workers::run_job(const Job& job) {
  job_ = job;
  const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  attempt(job, 0, seats_[0]);
  for (int worker = 1; worker < size_; ++worker) {
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    wait_while(seat.finished, round - 1);
  }
  for (int worker = 0; worker < size_; ++worker) {
    Seat& seat = seats_[static_cast<std::size_t>(worker)];
    if (!seat.error) continue;
    const std::exception_ptr error = std::exchange(seat.error, nullptr);
    for (int other = worker + 1; other < size_; ++other) seats_[static_cast<std::size_t>(other)].error = nullptr;
    std::rethrow_exception(error);
  }
}

void Workers::serve(int worker) {
  Seat& seat = seats_[static_cast<std::size_t>(worker)];
  for (std::uint32_t round = 0;;) {
    wait_while(round_, round);
    if (ends_.load()) return;
    ++round;
    attempt(job_, worker, seat);
    seat.finished.store(round, std::memory_order_release);
    seat.finished.notify_one();
  }
}

Share share_of(std::int64_t items, int worker, int workers, std::int64_t grain) {
  const std::int64_t grains = (items + grain - 1) / grain;
  return {std::min(items, grains * worker / workers * grain), std::min(items, grains * (worker + 1) / workers * grain)};
}

int usable_cores(int processes) {
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return 1;
  const int mine = CPU_COUNT(&mask), all = std::max(mine, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  const int overlap = (mine * processes + all - 1) / all;
  return std::max(1, mine / std::max(1, overlap));
}

}  // namespace weft
