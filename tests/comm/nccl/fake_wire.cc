#include "fake_wire.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/str.h"
#include "fake_nccl.h"

namespace weft::comm {

namespace {

template <class F>
F function(const char* name) {
  static void* library = dlopen(WEFT_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

const NcclCalls& fake_nccl() { return open_nccl(WEFT_FAKE_NCCL); }

const CudaCalls& fake_cuda() {
  static const CudaCalls kCalls = [] {
    CudaCalls calls{};
    function<void (*)(CudaCalls*)>("weft_fake_cuda")(&calls);
    return calls;
  }();
  return kCalls;
}

void set_fake_devices(int count) { function<void (*)(int)>("weft_fake_devices")(count); }
void set_fake_failure(int rank, int after) { function<void (*)(int, int)>("weft_fake_failure")(rank, after); }

std::string fresh_job_file() {
  static std::atomic<int> next{0};
  return (std::filesystem::temp_directory_path() / str("weft-nccl-job-", getpid(), "-", next++)).string();
}

NcclJob fake_job(int rank, int size, const std::string& file) {
  return {.rank = rank, .size = size, .file = file, .patience = std::chrono::seconds(60)};
}

void on_fake_ranks(int size, const std::function<void(NcclWire& wire)>& body) {
  const std::string file = fresh_job_file();
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      std::unique_ptr<NcclWire> wire;
      try {
        wire = std::make_unique<NcclWire>(fake_job(rank, size, file), fake_nccl(), fake_cuda());
        body(*wire);
      } catch (...) {
        const std::exception_ptr error = std::current_exception();
        {
          const std::lock_guard lock(mutex);
          if (!first) first = error;
        }
        if (wire) wire->abort(failure_of(wire->me(), error));
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::filesystem::remove(file);
  if (first) std::rethrow_exception(first);
}

}  // namespace weft::comm
