// ProcessorThreads: one thread per processor of this process, kept for the life of a session.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "weft/id.h"

namespace weft {

class ProcessorThreads {
 public:
  using Job = std::function<void(ProcessorId processor)>;

  struct Failure {
    ProcessorId processor = {};
    std::exception_ptr error;
  };

  // What became of a job.
  struct Outcome {
    std::vector<Failure> failures;     // in time order
    std::vector<ProcessorId> missing;  // who had not come back when the others' patience ended
  };

  explicit ProcessorThreads(
      const std::vector<ProcessorId>& processors);  // RunError if the system gives no more threads
  ~ProcessorThreads();
  ProcessorThreads(const ProcessorThreads&) = delete;
  ProcessorThreads& operator=(const ProcessorThreads&) = delete;

  // Lets every thread run job(processor), and returns. Only after that has been waited for may there be another.
  void begin(Job job);
  // Waits for all; once one has failed, for `patience` at most. Those who are missing then are left behind: they keep the
  // job alive, and this object must not be used again.
  Outcome end(std::chrono::nanoseconds patience);

  // Runs the job, waits for all, throws the first exception in time, if any.
  void run(Job job);

 private:
  struct Shared;  // with the threads, which may outlive this object
  static void serve(const std::shared_ptr<Shared>& shared, std::size_t index, ProcessorId processor);
  void stop();

  std::vector<ProcessorId> processors_;
  std::shared_ptr<Shared> shared_;
  std::vector<std::thread> threads_;
};

}  // namespace weft
