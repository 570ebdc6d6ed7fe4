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

SharedBlock make_block(int processors) {
  if (processors < 1) throw InternalError(str("a wire of ", processors, " processors was asked for"));
  const std::size_t bytes = SharedBlock::reserve(processors);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED)
    throw RunError({.what = str("no address space for the groups of ", processors, " processors: ", bytes, " bytes"),
                    .where = "making the threads wire",
                    .fix = "see what limits this process (ulimit -v), or use fewer processors"});
  SharedBlock::prepare(block);
  return SharedBlock(std::shared_ptr<void>(block, [bytes](void* data) { munmap(data, bytes); }), processors,
                     first(processors), Reach::kThreads);
}

[[noreturn]] void throw_no_memory(int processor, std::size_t bytes) {
  throw RunError({.what = str("no memory for the ", bytes, " bytes of processor ", processor),
                  .where = "allocating its arena",
                  .fix = "use a smaller batch or model, more processors on other machines, or recomputation"});
}

// On large pages, which the kernel gives, zeroed, to whoever writes them first.
Arena large_arena(int processor, std::size_t bytes) {
  const std::size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage, mapped = whole + kLargePage;
  void* map = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) throw_no_memory(processor, bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  void* data = reinterpret_cast<void*>((address + kLargePage - 1) / kLargePage * kLargePage);
  madvise(data, whole, MADV_HUGEPAGE);  // advice only: it may be refused
  return Arena(std::shared_ptr<void>(data, [map, mapped](void*) { munmap(map, mapped); }), bytes);
}

}  // namespace

std::unique_ptr<Wire> make_threads_wire(int processors) { return std::make_unique<ThreadsWire>(processors); }

ThreadsWire::ThreadsWire(int processors) : SharedWire(make_block(processors), processors <= cores()) {}

Arena ThreadsWire::allocate(int processor, std::size_t bytes) {
  if (bytes >= kLargePage) return large_arena(processor, bytes);
  const std::size_t whole = std::max((bytes + 63) / 64 * 64, std::size_t{64});
  void* data = std::aligned_alloc(64, whole);
  if (!data) throw_no_memory(processor, bytes);
  std::memset(data, 0, whole);
  return Arena(std::shared_ptr<void>(data, std::free), bytes);
}

}  // namespace weft::comm
