#include "api/gatherer.h"

#include <algorithm>
#include <cstring>

#include "api/shards.h"

namespace weft {

namespace {

// The axes along which shards differ.
Axes split_axes(const Value& value, const Mesh& mesh) {
  const Axes alike = replicated_axes(value.sharding, mesh);
  Axes split;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis)
    if (std::find(alike.begin(), alike.end(), axis) == alike.end()) split.push_back(axis);
  return split;
}

Axes all_axes(const Mesh& mesh) {
  Axes axes;
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) axes.push_back(axis);
  return axes;
}

std::size_t staging_bytes(const Mesh& mesh) {
  return std::max(Gatherer::kStagingBytes, sizeof(std::uint64_t) * static_cast<std::size_t>(mesh.size()));
}

}  // namespace

Gatherer::Gatherer(const Mesh& mesh, comm::Wire& wire, int processor)
    : mesh_(mesh), wire_(wire), processor_(processor), staging_(wire.allocate(processor, staging_bytes(mesh))) {}

comm::Group& Gatherer::group(const Axes& axes) {
  std::unique_ptr<comm::Group>& group = groups_[axes];
  if (!group) group = wire_.join(processor_, mesh_.group(processor_, axes));
  return *group;
}

void Gatherer::gather(const Value& value, const void* shard, Array* whole, const std::string& label,
                      comm::Deadline deadline) {
  const Axes axes = split_axes(value, mesh_);
  if (axes.empty()) {
    if (whole) copy_from_shard(shard, value, mesh_, processor_, *whole);
    return;
  }
  comm::Group& peers = group(axes);
  const std::vector<int> members = mesh_.group(processor_, axes);
  const std::size_t size = size_of(value.dtype), elements = static_cast<std::size_t>(value.shape.elements());
  const std::size_t most = std::max(staging_.bytes() / members.size() / size, std::size_t{1});
  for (std::size_t begin = 0; begin < elements; begin += most) {
    const std::size_t count = std::min(most, elements - begin);
    const auto piece = [&](std::size_t rank) { return staging_.data() + rank * count * size; };
    std::byte* mine = piece(static_cast<std::size_t>(peers.rank()));
    std::memcpy(mine, static_cast<const std::byte*>(shard) + begin * size, count * size);
    comm::all_gather(peers, {mine, count, value.dtype}, {staging_.data(), count * members.size(), value.dtype}, label,
                     deadline);
    for (std::size_t rank = 0; whole && rank < members.size(); ++rank)
      copy_piece_from_shard(piece(rank), static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count), value,
                            mesh_, members[rank], *whole);
  }
}

int Gatherer::first_unlike(std::uint64_t number, const std::string& label, comm::Deadline deadline) {
  auto* numbers = reinterpret_cast<std::uint64_t*>(staging_.data());
  const std::size_t size = static_cast<std::size_t>(mesh_.size()), me = static_cast<std::size_t>(processor_);
  numbers[me] = number;
  comm::all_gather(group(all_axes(mesh_)), {numbers + me, 1, DType::kI64}, {numbers, size, DType::kI64}, label,
                   deadline);
  for (std::size_t p = 1; p < size; ++p)
    if (numbers[p] != numbers[0]) return static_cast<int>(p);
  return -1;
}

}  // namespace weft
