// Shard: one processor's part of a variable, an input or an output, as a buffer of its device. The seam's
// pointers to the memory of a shard are pointers to a Shard.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "program/ir.h"
#include "runtime/xla/client.h"

namespace weft::xla {

class Shard {
 public:
  Shard(const Client& client, int device) : client_(client), device_(device) {}
  Shard(const Client& client, int device, const Value& value) : Shard(client, device) { set_type(value); }

  // Of an input: bytes that are written stay as they are until the step has ended, so nobody waits for their copy.
  void defer_copies() { defers_copies_ = true; }

  // A variable that was allocated by its size alone learns here what it holds; it is zero until it is written.
  void set_type(const Value& value);

  // Copy bytes to the device.
  void write(std::span<const std::byte> bytes);
  void take(std::vector<std::byte> bytes);
  void finish_copy() { copied_.wait("PJRT_Client_BufferFromHostBuffer"); }

  void read(std::span<std::byte> to) const;

  PJRT_Buffer* buffer();  // of zeros, if nothing was written
  void set_buffer(Buffer buffer) { buffer_ = std::move(buffer); }

 private:
  const Client& client_;
  const int device_;
  bool defers_copies_ = false;
  std::optional<BufferType> type_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> kept_;  // what is being copied, or what waits for a type
  Buffer buffer_;
  Event copied_;  // after kept_: its destructor waits
};

}  // namespace weft::xla
