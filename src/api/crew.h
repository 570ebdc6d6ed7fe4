// Crew: one thread per processor, kept for the life of a session.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft {

class Crew {
 public:
  explicit Crew(int processors);  // RunError if the system gives no more threads
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // Runs job(processor) on every thread and waits for all. Throws the first exception in time, if any. Not reentrant.
  void run(const std::function<void(int)>& job);

 private:
  void serve(int processor);
  void stop();

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(int)>* job_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

}  // namespace weft
