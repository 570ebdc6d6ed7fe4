#include "comm/threads/wire.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include <sys/mman.h>

#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr std::size_t kLargePage = 2 << 20;

std::vector<int> first(int processors) {
  std::vector<int> all(static_cast<std::size_t>(processors));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Hub make_hub(int processors) {
  if (processors < 1) throw InternalError(str("a wire of ", processors, " processors was asked for"));
  const std::size_t bytes = Hub::reserve(processors);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED)
    throw RunError({.what = str("no address space for the groups of ", processors, " processors: ", bytes, " bytes"),
                    .where = "making the threads wire",
                    .fix = "see what limits this process (ulimit -v), or use fewer processors"});
  Hub::prepare(block);
  return Hub(std::shared_ptr<void>(block, [bytes](void* data) { munmap(data, bytes); }), processors, first(processors),
             Reach::kThreads);
}

}  // namespace

std::unique_ptr<Wire> make_threads_wire(int processors) { return std::make_unique<ThreadsWire>(processors); }

ThreadsWire::ThreadsWire(int processors) : SharedWire(make_hub(processors), processors <= cores()) {}

Arena ThreadsWire::allocate(int processor, std::size_t bytes) {
  const std::size_t alignment = bytes >= kLargePage ? kLargePage : 64;
  const std::size_t whole = std::max((bytes + 63) / 64 * 64, std::size_t{64});
  void* data = nullptr;
  if (posix_memalign(&data, alignment, whole) != 0)
    throw RunError({.what = str("no memory for the ", bytes, " bytes of processor ", processor),
                    .where = "allocating its arena",
                    .fix = "use a smaller batch or model, more processors on other machines, or recomputation"});
  if (alignment == kLargePage) madvise(data, whole, MADV_HUGEPAGE);  // advice only: it may be refused
  std::memset(data, 0, whole);
  return Arena(std::shared_ptr<void>(data, std::free), bytes);
}

}  // namespace weft::comm
