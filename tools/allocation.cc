// Memory of small objects: a freed block stays with its thread, by its size. The compiler makes and frees millions of them
// in a search, and the C library keeps only seven of each size without looking further.
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kGrain = 16, kSizes = 33;  // blocks of up to 512 bytes
constexpr unsigned kMostKept = 8192;             // of each size

struct Block {
  Block* next;
};
struct Kept {
  Block* first;
  unsigned count;
};

thread_local constinit Kept kept_blocks[kSizes] = {};
thread_local constinit bool keeps = true;  // false: the thread ends

// Gives a thread's blocks back when it ends.
struct AtEnd {
  ~AtEnd() {
    keeps = false;
    for (Kept& kept : kept_blocks)
      while (Block* block = kept.first) {
        kept.first = block->next;
        std::free(block);
      }
  }
};
thread_local AtEnd at_end;

void* allocated(std::size_t bytes) {
  while (true) {
    if (void* memory = std::malloc(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (!handler) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  const std::size_t size = (bytes + kGrain - 1) / kGrain;
  if (size >= kSizes) return allocated(bytes);
  Kept& kept = kept_blocks[size];
  Block* const block = kept.first;
  if (!block) return allocated(size ? size * kGrain : kGrain);
  kept.first = block->next;
  --kept.count;
  __builtin_prefetch(kept.first);
  return block;
}

void operator delete(void* memory) noexcept { std::free(memory); }

void operator delete(void* memory, std::size_t bytes) noexcept {
  const std::size_t size = (bytes + kGrain - 1) / kGrain;
  if (!memory) return;
  if (size >= kSizes || !keeps || kept_blocks[size].count >= kMostKept) return std::free(memory);
  static_cast<void>(&at_end);  // its destructor runs when the thread ends
  Kept& kept = kept_blocks[size];
  kept.first = new (memory) Block{kept.first};
  ++kept.count;
}

#endif
