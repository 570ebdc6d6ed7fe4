#include "comm/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

std::size_t whole_pages(std::size_t bytes) { return (bytes + kLargePage - 1) / kLargePage * kLargePage; }

[[noreturn]] void throw_no_memory(ProcessorId processor, std::size_t bytes) {
  throw RunError({.code = "memory.allocation-failed",
                  .what = str("no memory for the ", bytes, " bytes of processor ", processor),
                  .where = "allocating its memory",
                  .fix = "use a smaller batch or model, more processors on other machines, or recomputation"});
}

// Address space of whole large pages, of which nothing is usable yet; null if the system gives none.
std::shared_ptr<void> address_space(std::size_t bytes, std::byte*& begin) {
  const std::size_t mapped = whole_pages(bytes) + kLargePage;
  void* map = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(map);
  begin = reinterpret_cast<std::byte*>((address + kLargePage - 1) / kLargePage * kLargePage);
  return std::shared_ptr<void>(map, [mapped](void* area) { munmap(area, mapped); });
}

// The kernel gives pages, zeroed, to whoever writes them first; large ones where they are needed whole, so that no more
// memory is taken than was asked for.
bool make_usable(std::byte* begin, std::size_t bytes) {
  if (mprotect(begin, (bytes + kPage - 1) / kPage * kPage, PROT_READ | PROT_WRITE) != 0) return false;
  const std::size_t large = bytes / kLargePage * kLargePage;
  if (large > 0) madvise(begin, large, MADV_HUGEPAGE);  // advice only: it may be refused
  return true;
}

Memory private_memory(ProcessorId processor, std::size_t bytes) {
  if (bytes >= kLargePage) {
    std::byte* begin = nullptr;
    const std::shared_ptr<void> area = address_space(bytes, begin);
    if (!area || !make_usable(begin, bytes)) throw_no_memory(processor, bytes);
    return Memory(std::shared_ptr<void>(area, begin), bytes);
  }
  const std::size_t whole = std::max((bytes + 63) / 64 * 64, std::size_t{64});
  void* data = std::aligned_alloc(64, whole);
  if (!data) throw_no_memory(processor, bytes);
  std::memset(data, 0, whole);
  return Memory(std::shared_ptr<void>(data, std::free), bytes);
}

std::size_t machine_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

Memory allocate(Wire& wire, ProcessorId processor, std::size_t bytes) {
  PeerMemory* shared = wire.peer_memory(processor);
  if (!shared) return private_memory(processor, bytes);
  std::shared_ptr<void> data = shared->reserve(bytes);
  if (!data) throw_no_memory(processor, bytes);
  shared->touch(static_cast<std::byte*>(data.get()), bytes);
  return Memory(std::move(data), bytes);
}

// Whether the area has room for as many bytes; takes a new area if the last one has not.
bool MemoryPool::has_room(std::size_t bytes) {
  constexpr std::size_t kArea = 256 << 20;
  if (area_ && used_ + bytes <= reserved_) return true;
  for (std::size_t size = std::max(kArea, whole_pages(bytes)); size >= bytes; size /= 2) {
    area_ = address_space(size, begin_);
    used_ = usable_ = 0;
    reserved_ = area_ ? size : 0;
    if (area_) return true;
  }
  return false;
}

Memory MemoryPool::allocate(std::size_t bytes) {
  constexpr std::size_t kLeast = 64 << 10;
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage;
  if (bytes < kLeast || wire_.peer_memory(processor_) || !has_room(size))
    return comm::allocate(wire_, processor_, bytes);
  if (used_ + size > usable_) {
    const std::size_t usable = whole_pages(used_ + size);
    if (!make_usable(begin_ + usable_, usable - usable_)) throw_no_memory(processor_, bytes);
    usable_ = usable;
  }
  std::byte* piece = begin_ + used_;
  used_ += size;
  const auto free = [area = area_, size](void* data) { madvise(data, size, MADV_DONTNEED); };
  return Memory(std::shared_ptr<void>(piece, free), bytes);
}

GrowingMemory::GrowingMemory(Wire& wire, ProcessorId processor) : wire_(wire), processor_(processor) {}

GrowingMemory::~GrowingMemory() = default;

// A process whose address space is limited gets less of it.
void GrowingMemory::reserve() {
  PeerMemory* shared = wire_.peer_memory(processor_);
  for (std::size_t bytes = shared ? shared->bytes() / 2 : whole_pages(machine_bytes()); bytes >= kLargePage;
       bytes /= 2) {
    area_ = shared ? shared->reserve(bytes) : address_space(bytes, data_);
    if (!area_) continue;
    if (shared) data_ = static_cast<std::byte*>(area_.get());
    reserved_ = bytes;
    return;
  }
  throw_no_memory(processor_, kLargePage);
}

void GrowingMemory::grow(std::size_t bytes) {
  if (bytes <= bytes_) return;
  if (!area_) reserve();
  if (bytes > reserved_) throw_no_memory(processor_, bytes);
  if (PeerMemory* shared = wire_.peer_memory(processor_)) shared->touch(data_ + bytes_, bytes - bytes_);
  else if (!make_usable(data_, bytes)) throw_no_memory(processor_, bytes);
  bytes_ = bytes;
}

}  // namespace weft::comm
