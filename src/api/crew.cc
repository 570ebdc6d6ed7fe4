#include "api/crew.h"

#include <system_error>

#include "base/str.h"
#include "weft/error.h"

namespace weft {

Crew::Crew(int processors) {
  threads_.reserve(static_cast<std::size_t>(processors));
  try {
    for (int p = 0; p < processors; ++p) threads_.emplace_back([this, p] { serve(p); });
  } catch (const std::system_error& error) {
    const std::size_t made = threads_.size();
    stop();
    throw RunError({.what = str("the system gave ", made, " threads, but ", processors,
                                " processors need one each: ", error.what()),
                    .where = "starting the processors",
                    .fix = "use a smaller mesh, or raise the limit of processes (ulimit -u)"});
  }
}

Crew::~Crew() { stop(); }

void Crew::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(const std::function<void(int)>& job) {
  std::unique_lock lock(mutex_);
  job_ = &job;
  busy_ = static_cast<int>(threads_.size());
  failure_ = nullptr;
  ++round_;
  wake_.notify_all();
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void Crew::serve(int processor) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    const std::function<void(int)>& job = *job_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      job(processor);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace weft
