#include "runtime/shards.h"

#include <algorithm>
#include <cstring>

#include "language/shape_math.h"

namespace weft {

namespace {

// Calls run(offset in the whole, offset in the shard, elements) for every contiguous run of the shard's elements from
// `first` to `last`.
template <class Run>
void for_each_run(const Shape& whole, const Shape& shard, const std::vector<std::int64_t>& begin, std::int64_t first,
                  std::int64_t last, const Run& run) {
  const std::vector<std::int64_t> strides = dense_strides(whole);
  const std::size_t rank = shard.rank();
  const std::int64_t length = rank == 0 ? 1 : shard[rank - 1].size;
  for (std::int64_t row = first / length; row * length < last; ++row) {
    std::int64_t rest = row, offset = rank == 0 ? 0 : begin[rank - 1];
    for (std::size_t d = rank; d-- > 1; rest /= shard[d - 1].size)
      offset += (begin[d - 1] + rest % shard[d - 1].size) * strides[d - 1];
    const std::int64_t from = std::max(first, row * length), to = std::min(last, (row + 1) * length);
    run(offset + from - row * length, from, to - from);
  }
}

}  // namespace

void copy_to_shard(const Array& whole, const Value& value, const Mesh& mesh, ProcessorId processor, void* shard) {
  const std::size_t bytes = size_of(value.dtype);
  for_each_run(whole.shape(), value.shape, shard_begin(value.shape, value.sharding, mesh, processor), 0,
               value.shape.elements(), [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                 std::memcpy(static_cast<std::byte*>(shard) + static_cast<std::size_t>(to) * bytes,
                             whole.bytes() + static_cast<std::size_t>(from) * bytes,
                             static_cast<std::size_t>(count) * bytes);
               });
}

void copy_from_shard(const void* shard, const Value& value, const Mesh& mesh, ProcessorId processor, Array& whole) {
  copy_piece_from_shard(shard, 0, value.shape.elements(), value, mesh, processor, whole);
}

void copy_piece_from_shard(const void* piece, std::int64_t first, std::int64_t count, const Value& value,
                           const Mesh& mesh, ProcessorId processor, Array& whole) {
  const std::size_t bytes = size_of(value.dtype);
  for_each_run(whole.shape(), value.shape, shard_begin(value.shape, value.sharding, mesh, processor), first,
               first + count, [&](std::int64_t to, std::int64_t from, std::int64_t run) {
                 std::memcpy(whole.bytes() + static_cast<std::size_t>(to) * bytes,
                             static_cast<const std::byte*>(piece) + static_cast<std::size_t>(from - first) * bytes,
                             static_cast<std::size_t>(run) * bytes);
               });
}

bool is_primary_shard(const Value& value, const Mesh& mesh, ProcessorId processor) {
  return mesh.coordinate(processor, replicated_axes(value.sharding, mesh)) == 0;
}

}  // namespace weft
