#include "runtime/xla/shard.h"

#include <algorithm>

#include "program/memory_plan.h"

namespace weft::xla {

void Shard::set_type(const Value& value) {
  if (type_) return;
  type_ = buffer_type(value.dtype, value.shape);
  bytes_ = static_cast<std::size_t>(bytes_of(value));
  if (!kept_.empty()) take(std::move(kept_));
}

void Shard::write(std::span<const std::byte> bytes) {
  internal_check(type_.has_value() && bytes.size() == bytes_, "a shard is written with bytes of another type");
  buffer_.reset();
  buffer_ = client_.upload(device_, bytes.data(), *type_, copied_);
  if (!defers_copies_) finish_copy();
}

void Shard::take(std::vector<std::byte> bytes) {
  finish_copy();
  kept_ = std::move(bytes);
  if (type_) write(kept_);
}

void Shard::read(std::span<std::byte> to) const {
  if (buffer_) client_.download(buffer_, *type_, to);
  else if (!kept_.empty()) std::copy(kept_.begin(), kept_.end(), to.begin());
  else std::fill(to.begin(), to.end(), std::byte{});
}

PJRT_Buffer* Shard::buffer() {
  if (!buffer_) {
    take(std::vector<std::byte>(bytes_));
  }
  return buffer_.get();
}

}  // namespace weft::xla
