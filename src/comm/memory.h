// Host memory of one processor that its peers on a wire can reach. The caller that allocates it owns it; the wire only
// determines where it is allocated.
#pragma once

#include <cstddef>
#include <memory>

#include "weft/id.h"

namespace weft::comm {

// Sizes of the pages of memory.
inline constexpr std::size_t kPage = 4 << 10, kLargePage = 2 << 20;

class Wire;

// Address space that the peers of a processor have mapped. Its memory exists once it is touched, and is zero then.
class PeerMemory {
 public:
  virtual ~PeerMemory() = default;
  virtual std::size_t bytes() const = 0;                              // of address space, used or not
  virtual std::shared_ptr<void> reserve(std::size_t bytes) = 0;       // null if there is no room
  virtual void touch(std::byte* begin, std::size_t bytes) const = 0;  // makes the memory exist now
};

// A piece of memory: zeroed when it is allocated, aligned to 64 bytes, freed with the object.
class Memory {
 public:
  Memory() = default;
  Memory(std::shared_ptr<void> data, std::size_t bytes) : data_(std::move(data)), bytes_(bytes) {}
  Memory(Memory&&) = default;
  Memory& operator=(Memory&&) = default;

  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<void> data_;
  std::size_t bytes_ = 0;
};

// RunError if the system has no more memory. Called by the thread that will use the memory.
Memory allocate(Wire& wire, ProcessorId processor, std::size_t bytes);

// Gives out memory that lies side by side, so that pieces below a large page lie in large pages too: a processor then waits
// less for translations of addresses. Small pieces, and memory that peers reach, are as allocate() gives them.
class MemoryPool {
 public:
  MemoryPool(Wire& wire, ProcessorId processor) : wire_(wire), processor_(processor) {}

  // As allocate(). A piece that is freed returns its memory to the system; its addresses are not given out again.
  Memory allocate(std::size_t bytes);

 private:
  bool has_room(std::size_t bytes);

  Wire& wire_;
  const ProcessorId processor_;
  std::shared_ptr<void> area_;
  std::byte* begin_ = nullptr;
  std::size_t used_ = 0, usable_ = 0, reserved_ = 0;  // of the area
};

// Memory that grows where it lies: address space for all of the machine's memory, of which the first bytes are usable.
class GrowingMemory {
 public:
  GrowingMemory(Wire& wire, ProcessorId processor);
  ~GrowingMemory();
  GrowingMemory(const GrowingMemory&) = delete;
  GrowingMemory& operator=(const GrowingMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }  // usable
  // Makes at least this many bytes usable; the new ones are zero. RunError if the system has no more memory.
  void grow(std::size_t bytes);

 private:
  void reserve();

  Wire& wire_;
  const ProcessorId processor_;
  std::shared_ptr<void> area_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0, reserved_ = 0;
};

}  // namespace weft::comm
