#include "runtime/processor_threads.h"

#include <condition_variable>
#include <mutex>
#include <system_error>

#include "base/str.h"
#include "weft/error.h"

namespace weft {

struct ProcessorThreads::Shared {
  std::mutex mutex;
  std::condition_variable wake, done;
  std::shared_ptr<const Job> job;
  std::uint64_t round = 0;
  std::vector<bool> busy;  // by thread
  std::size_t many_busy = 0;
  bool stop = false;
  std::vector<Failure> failures;
};

ProcessorThreads::ProcessorThreads(const std::vector<ProcessorId>& processors)
    : processors_(processors), shared_(std::make_shared<Shared>()) {
  shared_->busy.resize(processors.size());
  threads_.reserve(processors.size());
  try {
    for (std::size_t i = 0; i < processors.size(); ++i)
      threads_.emplace_back([shared = shared_, i, p = processors[i]] { serve(shared, i, p); });
  } catch (const std::system_error& error) {
    const std::size_t made = threads_.size();
    stop();
    throw RunError({.code = "run.no-processor-thread",
                    .what = str("the system gave ", made, " threads, but ", processors.size(),
                                " processors need one each: ", error.what()),
                    .where = "starting the processors",
                    .fix = "use a smaller mesh, or raise the limit of processes (ulimit -u)"});
  }
}

ProcessorThreads::~ProcessorThreads() { stop(); }

void ProcessorThreads::stop() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wake.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ProcessorThreads::begin(Job job) {
  Shared& s = *shared_;
  const std::lock_guard lock(s.mutex);
  s.job = std::make_shared<const Job>(std::move(job));
  s.busy.assign(processors_.size(), true);
  s.many_busy = processors_.size();
  s.failures.clear();
  ++s.round;
  s.wake.notify_all();
}

ProcessorThreads::Outcome ProcessorThreads::end(std::chrono::nanoseconds patience) {
  Shared& s = *shared_;
  std::unique_lock lock(s.mutex);
  const auto all_back = [&] { return s.many_busy == 0; };
  s.done.wait(lock, [&] { return all_back() || !s.failures.empty(); });
  if (patience == std::chrono::nanoseconds::max()) s.done.wait(lock, all_back);
  else s.done.wait_for(lock, patience, all_back);
  Outcome outcome{.failures = s.failures, .missing = {}};
  for (std::size_t i = 0; i < processors_.size(); ++i)
    if (s.busy[i]) outcome.missing.push_back(processors_[i]);
  const std::shared_ptr<const Job> last = std::move(s.job);  // goes after the lock does: it may own much
  if (!outcome.missing.empty()) {
    s.stop = true;
    s.wake.notify_all();
    for (std::thread& thread : threads_) thread.detach();
    threads_.clear();
  }
  lock.unlock();
  return outcome;
}

void ProcessorThreads::run(Job job) {
  begin(std::move(job));
  const Outcome outcome = end(std::chrono::nanoseconds::max());
  if (!outcome.failures.empty()) std::rethrow_exception(outcome.failures[0].error);
}

void ProcessorThreads::serve(const std::shared_ptr<Shared>& shared, std::size_t index, ProcessorId processor) {
  Shared& s = *shared;
  std::uint64_t seen = 0;
  std::unique_lock lock(s.mutex);
  while (true) {
    s.wake.wait(lock, [&] { return s.stop || s.round != seen; });
    if (s.stop) return;
    seen = s.round;
    std::shared_ptr<const Job> job = s.job;
    lock.unlock();
    std::exception_ptr failure;
    try {
      (*job)(processor);
    } catch (...) {
      failure = std::current_exception();
    }
    job.reset();  // for one left behind this may be the last of a session
    lock.lock();
    if (failure) s.failures.push_back({processor, failure});
    s.busy[index] = false;
    if (--s.many_busy == 0 || failure) s.done.notify_one();
  }
}

}  // namespace weft
