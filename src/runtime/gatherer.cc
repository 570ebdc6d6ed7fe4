#include "runtime/gatherer.h"

#include <algorithm>

#include "base/index.h"
#include "runtime/engine.h"
#include "runtime/shards.h"

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

Gatherer::Gatherer(const Mesh& mesh, comm::Wire& wire, ProcessorId processor)
    : mesh_(mesh), wire_(wire), processor_(processor), staging_(comm::allocate(wire, processor, staging_bytes(mesh))) {}

comm::Group& Gatherer::group(const Axes& axes) {
  std::unique_ptr<comm::Group>& group = groups_[axes];
  if (!group) group = wire_.join(processor_, mesh_.group(processor_, axes));
  return *group;
}

void Gatherer::gather(Device& device, const Value& value, const void* shard, Array* whole, const std::string& label,
                      comm::Deadline deadline) {
  const Axes axes = split_axes(value, mesh_);
  if (axes.empty()) {
    if (whole) device.download(shard, value, *whole);
    return;
  }
  comm::Group& peers = group(axes);
  const std::vector<ProcessorId> members = mesh_.group(processor_, axes);
  const std::size_t size = size_of(value.dtype), elements = static_cast<std::size_t>(value.shape.elements());
  const std::size_t most = std::max(staging_.bytes() / members.size() / size, std::size_t{1});
  for (std::size_t begin = 0; begin < elements; begin += most) {
    const std::size_t count = std::min(most, elements - begin);
    const auto piece = [&](std::size_t rank) { return staging_.data() + rank * count * size; };
    std::byte* mine = piece(at(peers.rank()));
    device.read(static_cast<const std::byte*>(shard) + begin * size, {mine, count * size});
    comm::all_gather(peers, {mine, count, value.dtype}, {staging_.data(), count * members.size(), value.dtype}, label,
                     deadline);
    for (std::size_t rank = 0; whole && rank < members.size(); ++rank)
      copy_piece_from_shard(piece(rank), static_cast<std::int64_t>(begin), static_cast<std::int64_t>(count), value,
                            mesh_, members[rank], *whole);
  }
}

void Gatherer::gather_numbers(std::span<const std::int64_t> own, std::vector<std::int64_t>* all,
                              const std::string& label, comm::Deadline deadline) {
  comm::Group& peers = group(all_axes(mesh_));
  auto* numbers = reinterpret_cast<std::int64_t*>(staging_.data());
  const std::size_t size = static_cast<std::size_t>(mesh_.size());
  const std::size_t most = std::max(staging_.bytes() / size / sizeof(std::int64_t), std::size_t{1});
  for (std::size_t begin = 0; begin < own.size(); begin += most) {
    const std::size_t count = std::min(most, own.size() - begin);
    std::int64_t* mine = numbers + processor_.index() * count;
    std::copy_n(own.begin() + static_cast<std::ptrdiff_t>(begin), count, mine);
    comm::all_gather(peers, {mine, count, DType::kI64}, {numbers, count * size, DType::kI64}, label, deadline);
    for (std::size_t p = 0; all && p < size; ++p)
      std::copy_n(numbers + p * count, count, all->begin() + static_cast<std::ptrdiff_t>(p * own.size() + begin));
  }
}

}  // namespace weft
