#include "comm/threads/wire.h"

#include <algorithm>
#include <numeric>

#include <sys/mman.h>

#include "base/index.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

SharedBlock make_block(int processors) {
  if (processors < 1) throw InternalError(str("a wire of ", processors, " processors was asked for"));
  const std::size_t bytes = SharedBlock::reserve(processors);
  void* block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block == MAP_FAILED)
    throw RunError({.code = "wire.no-address-space",
                    .what = str("no address space for the groups of ", processors, " processors: ", bytes, " bytes"),
                    .where = "making the threads wire",
                    .fix = "see what limits this process (ulimit -v), or use fewer processors"});
  SharedBlock::prepare(block);
  return SharedBlock(std::shared_ptr<void>(block, [bytes](void* data) { munmap(data, bytes); }), processors,
                     identity<ProcessorId>(at(processors)), Reach::kThreads);
}

}  // namespace

std::unique_ptr<Wire> make_threads_wire(int processors) { return std::make_unique<ThreadsWire>(processors); }

ThreadsWire::ThreadsWire(int processors) : SharedWire(make_block(processors), processors <= cores()) {}

}  // namespace weft::comm
