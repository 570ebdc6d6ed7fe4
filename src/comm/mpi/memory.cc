#include "comm/mpi/memory.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/str.h"
#include "comm/memory.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1: large pages now

[[noreturn]] void fail(const std::string& what, const std::string& fix) {
  throw RunError({.code = "mpi.shared-memory-failed",
                  .what = str(what, ": ", std::strerror(errno)),
                  .where = "memory shared by the ranks of one host",
                  .fix = fix});
}

}  // namespace

Mapping::Mapping(int descriptor, std::size_t bytes) : bytes_(bytes) {
  // A large page more, so that the data can begin on one: large pages need the same place in file and memory.
  const std::size_t whole = bytes + kLargePage;
  void* area = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (area == MAP_FAILED)
    fail(str("no address space for ", bytes, " bytes"), "see what limits this process (ulimit -v)");
  const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(area) + kLargePage - 1) / kLargePage * kLargePage;
  data_ = std::shared_ptr<void>(reinterpret_cast<void*>(begin), [area, whole](void*) { munmap(area, whole); });
  if (mmap(data_.get(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, descriptor, 0) ==
      MAP_FAILED)
    fail(str("cannot map ", bytes, " bytes"), "see what limits this process (ulimit -v)");
}

Mapping Mapping::create(std::size_t bytes, int& descriptor) {
  descriptor = memfd_create("weft", MFD_CLOEXEC);
  if (descriptor < 0 || ftruncate(descriptor, static_cast<off_t>(bytes)) != 0)
    fail("cannot make a file in memory", "see what limits this process (ulimit -n, seccomp)");
  return Mapping(descriptor, bytes);
}

Mapping Mapping::open(pid_t process, int descriptor, std::size_t bytes) {
  const std::string path = str("/proc/", process, "/fd/", descriptor);
  const int mine = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (mine < 0)
    fail(str("cannot open ", path, ", memory of a rank on this host"),
         "start all ranks of a host as one user and in one container");
  const std::shared_ptr<void> close_it(nullptr, [mine](void*) { close(mine); });
  return Mapping(mine, bytes);
}

Heap::Heap(Mapping mapping) : mapping_(std::move(mapping)) { free_[0] = mapping_.bytes(); }

std::shared_ptr<void> Heap::reserve(std::size_t bytes) {
  const std::size_t alignment = bytes >= kLargePage ? kLargePage : kPage;
  const std::size_t whole = std::max((bytes + kPage - 1) / kPage * kPage, kPage);
  std::size_t place = 0;
  {
    const std::lock_guard lock(mutex_);
    auto range = free_.begin();
    for (; range != free_.end(); ++range) {
      place = (range->first + alignment - 1) / alignment * alignment;
      if (place + whole <= range->first + range->second) break;
    }
    if (range == free_.end()) return nullptr;
    const std::size_t begin = range->first, end = begin + range->second;
    free_.erase(range);
    if (place > begin) free_[begin] = place - begin;
    if (place + whole < end) free_[place + whole] = end - place - whole;
  }
  return std::shared_ptr<void>(mapping_.data() + place,
                               [heap = shared_from_this(), place, whole](void*) { heap->give_back(place, whole); });
}

// Large pages are advice only, as the system's default for shared memory is small ones: a large arena is 1.3 times faster
// in them.
void Heap::touch(std::byte* begin, std::size_t bytes) const {
  std::memset(begin, 0, bytes);
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + kLargePage - 1) / kLargePage * kLargePage;
  const auto last = reinterpret_cast<std::uintptr_t>(begin + bytes) / kLargePage * kLargePage;
  if (first < last) madvise(reinterpret_cast<void*>(first), last - first, kCollapse);
}

void Heap::give_back(std::size_t place, std::size_t bytes) {
  madvise(mapping_.data() + place, bytes, MADV_REMOVE);
  const std::lock_guard lock(mutex_);
  auto range = free_.emplace(place, bytes).first;
  if (const auto next = std::next(range); next != free_.end() && place + bytes == next->first) {
    range->second += next->second;
    free_.erase(next);
  }
  if (range == free_.begin()) return;
  const auto before = std::prev(range);
  if (before->first + before->second != range->first) return;
  before->second += range->second;
  free_.erase(range);
}

}  // namespace weft::comm
