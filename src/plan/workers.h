// Threads that live as long as a search: the partitioner keeps the paths of reshards per thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace weft {

class Workers {
 public:
  explicit Workers(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::size_t count() const { return threads_.size(); }

  // Calls job(0) to job(jobs - 1) and waits for all. Throws what the last failed job threw.
  void run(std::size_t jobs, const std::function<void(std::size_t)>& job) {
    std::unique_lock lock(mutex_);
    job_ = &job;
    jobs_ = jobs;
    next_ = done_ = 0;
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ == jobs_; });
    jobs_ = next_ = done_ = 0;
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return ends_ || next_ < jobs_; });
      if (ends_) return;
      const std::size_t i = next_++;
      lock.unlock();
      std::exception_ptr error;
      try {
        (*job_)(i);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      if (error) error_ = error;
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(std::size_t)>* job_ = nullptr;
  std::size_t jobs_ = 0, next_ = 0, done_ = 0;
  bool ends_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace weft
