#include "comm/spawn.h"

#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "base/str.h"

namespace weft::comm {

void on_every_processor(Wire& wire, const std::function<void(int processor)>& body) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto failed = [&](int processor, const char* what) {
    {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
    wire.abort(str("processor ", processor, " failed: ", what));
  };
  const auto run = [&](int processor) {
    try {
      body(processor);
    } catch (const std::exception& error) {
      failed(processor, error.what());
    } catch (...) {
      failed(processor, "an exception of unknown type");
    }
  };
  const std::vector<int> local = wire.local();
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < local.size(); ++i) threads.emplace_back(run, local[i]);
  run(local.front());
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace weft::comm
