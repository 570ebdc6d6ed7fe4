#include "runtime/host/workers.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <latch>
#include <system_error>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "runtime/host/host_clock.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr std::int64_t kMicrosecond = 1000, kMillisecond = 1000 * kMicrosecond;
constexpr std::int64_t kSpin = 200 * kMicrosecond;  // longer than what lies between two instructions
constexpr int kPauses = 64;                         // between two looks at the clock

constexpr std::int64_t kWindow = 50 * kMillisecond;
constexpr std::int64_t kAlonePerLoss = 8;  // so that the losses of trying again stay a small part of the time
constexpr std::int64_t kMostAlone = 200 * kMillisecond;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

// Alone, the processor's thread would run the other shares too, each in about the time of its own.
void SharingBalance::add(std::int64_t worked, std::int64_t lost, std::int64_t now) {
  saved_ += others_ * worked;
  lost_ += lost;
  if (lost_ > saved_) {
    alone_until_ = now + std::min(kMostAlone, kAlonePerLoss * (lost_ - saved_));
    saved_ = lost_ = 0;
  } else if (now - since_ > kWindow) {
    saved_ /= 2;
    lost_ /= 2;
    since_ = now;
  }
}

Workers::Workers(int size, bool spins, void (*prepare)())
    : size_(std::max(1, size)),
      spins_(spins),
      balance_(size_),
      slots_(std::make_unique<ShareSlot[]>(static_cast<std::size_t>(size_))),
      scratch_(static_cast<std::size_t>(size_)) {
  std::latch prepared(size_ - 1);
  try {
    for (int worker = 1; worker < size_; ++worker)
      threads_.emplace_back([this, worker, prepare, &prepared] {
        if (prepare) prepare();
        prepared.count_down();
        serve(worker);
      });
  } catch (const std::system_error& error) {
    stop();
    throw RunError(
        {.code = "run.no-worker-thread",
         .what = str("the system gives no thread for worker ", threads_.size() + 1, " of ", size_, ": ", error.what()),
         .where = "Session",
         .fix = "ask for fewer workers, or raise the limit on threads"});
  }
  if (prepare) prepare();
  prepared.wait();
}

Workers::~Workers() { stop(); }

void Workers::stop() {
  ends_.store(true);
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::reserve(std::size_t bytes) {
  constexpr std::size_t kAlignment = 4096;
  if (bytes <= scratch_bytes_) return;
  scratch_bytes_ = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (auto& memory : scratch_) memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, scratch_bytes_)));
}

// Whether the number changed within the time of a spin.
bool Workers::spin_while(const std::atomic<std::uint32_t>& number, std::uint32_t value) const {
  if (!spins_) return number.load(std::memory_order_acquire) != value;
  for (std::int64_t end = 0;;) {
    for (int i = 0; i < kPauses; ++i) {
      if (number.load(std::memory_order_acquire) != value) return true;
      pause();
    }
    const std::int64_t now = host_now();
    if (end == 0) end = now + kSpin;
    if (now > end) return false;
  }
}

// 0 if the system does not say.
std::int64_t Workers::cpu_time_of(int worker) {
  clockid_t clock;
  timespec time;
  const bool known =
      pthread_getcpuclockid(threads_[at(worker - 1)].native_handle(), &clock) == 0 && clock_gettime(clock, &time) == 0;
  return known ? time.tv_sec * 1000 * kMillisecond + time.tv_nsec : 0;
}

// Waits until the share that another worker runs is finished: how long that worker was not running meanwhile.
std::int64_t Workers::wait_for(int share, std::uint32_t round) {
  const ShareSlot& slot = this->slot(share);
  if (spin_while(slot.finished, round - 1)) return 0;
  const int named = slot.runner.load(std::memory_order_relaxed), runner = named == 0 ? share : named;
  const std::int64_t begin = host_now(), cpu_begin = cpu_time_of(runner);
  slot.finished.wait(round - 1, std::memory_order_acquire);
  const std::int64_t ran = cpu_time_of(runner) - cpu_begin;
  return std::max<std::int64_t>(0, host_now() - begin - ran);
}

void Workers::attempt(const Job& job, int share, int worker) {
  const std::int64_t begin = trace_ ? host_now() : 0;
  try {
    job.call(job.fn, share);
  } catch (...) {
    slot(share).error = std::current_exception();
  }
  if (trace_) trace_->add_share(worker, begin, host_now());
}

// Every share is taken in every round, so one that was last taken in the round before is free, and its job is there
// until it is finished. A worker that comes late, to a round that is over, takes nothing.
bool Workers::takes(int share, int worker, std::uint32_t round) {
  ShareSlot& slot = this->slot(share);
  std::uint32_t before = round - 1;
  if (slot.begun.load(std::memory_order_relaxed) != before || !slot.begun.compare_exchange_strong(before, round))
    return false;
  slot.runner.store(worker, std::memory_order_relaxed);
  return true;
}

void Workers::run_taken(int share, int worker, std::uint32_t round) {
  ShareSlot& slot = this->slot(share);
  attempt(job_, share, worker);
  slot.finished.store(round);
  if (worker != 0) slot.finished.notify_one();
}

void Workers::run_job(const Job& job) {
  const std::int64_t begin = host_now();
  if (balance_.alone(begin))
    for (int share = 0; share < size_; ++share) attempt(job, share, 0);
  else run_shared(job, begin);
  rethrow();
}

void Workers::run_shared(const Job& job, std::int64_t begin) {
  job_ = job;
  const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  round_.store(round);
  round_.notify_all();
  attempt(job, 0, 0);
  for (int share = 1; share < size_; ++share)
    if (takes(share, 0, round)) run_taken(share, 0, round);
  const std::int64_t worked = host_now() - begin;
  std::int64_t lost = 0;
  for (int share = 1; share < size_; ++share) lost += wait_for(share, round);
  balance_.add(worked, lost, begin + worked + lost);
}

// The error of the first share that has one.
void Workers::rethrow() {
  std::exception_ptr first;
  for (int share = 0; share < size_; ++share) {
    if (!slot(share).error) continue;
    const std::exception_ptr error = std::exchange(slot(share).error, nullptr);
    if (!first) first = error;
  }
  if (first) std::rethrow_exception(first);
}

void Workers::serve(int worker) {
  for (std::uint32_t round = 0;;) {
    if (!spin_while(round_, round)) round_.wait(round, std::memory_order_acquire);
    round = round_.load(std::memory_order_acquire);
    if (ends_.load()) return;
    if (takes(worker, worker, round)) run_taken(worker, worker, round);
    for (int i = 1, share = worker; i < size_ - 1; ++i) {
      share = share + 1 < size_ ? share + 1 : 1;
      if (!takes(share, worker, round)) break;
      run_taken(share, worker, round);
    }
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
