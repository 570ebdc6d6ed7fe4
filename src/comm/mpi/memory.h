// Memory of one process that other processes of the host can map: an unnamed file, far larger than the part in use.
//
// MPI's shared windows do the same, but they are in /dev/shm, which containers limit to 64 MiB, and all ranks make and
// free them together, so a dead rank would hang the rest. Here each process allocates and frees without its peers.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include <sys/types.h>

#include "comm/memory.h"

namespace weft::comm {

// Mapped pages; they exist once touched.
class Mapping {
 public:
  Mapping() = default;
  static Mapping create(std::size_t bytes, int& descriptor);              // the descriptor is the caller's to close
  static Mapping open(pid_t process, int descriptor, std::size_t bytes);  // what another process has created
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }
  const std::shared_ptr<void>& owner() const { return data_; }

 private:
  Mapping(int descriptor, std::size_t bytes);
  std::shared_ptr<void> data_;
  std::size_t bytes_ = 0;
};

// Hands out ranges of a mapping. What is freed goes back to the system, and is zero when it is handed out again.
class Heap : public PeerMemory, public std::enable_shared_from_this<Heap> {
 public:
  explicit Heap(Mapping mapping);
  std::size_t bytes() const override { return mapping_.bytes(); }
  std::shared_ptr<void> reserve(std::size_t bytes) override;
  void touch(std::byte* begin, std::size_t bytes) const override;
  const Mapping& mapping() const { return mapping_; }

 private:
  void give_back(std::size_t place, std::size_t bytes);

  const Mapping mapping_;
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // place -> bytes; neighbours are joined
};

}  // namespace weft::comm
