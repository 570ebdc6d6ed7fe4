#include "comm/spawn.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace weft::comm {

void on_every_processor(Wire& wire, const std::function<void(ProcessorId processor)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](ProcessorId processor) {
    try {
      body(processor);
    } catch (...) {
      const std::exception_ptr error = std::current_exception();
      {
        const std::lock_guard lock(mutex);
        if (!first) first = error;
      }
      wire.abort(failure_of(processor, error));
    }
  };
  const std::vector<ProcessorId> local = wire.local();
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < local.size(); ++i) threads.emplace_back(run, local[i]);
  run(local.front());
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace weft::comm
