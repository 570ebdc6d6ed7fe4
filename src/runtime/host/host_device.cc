#include "runtime/host/host_device.h"

#include <cstring>

#include "runtime/host/host_clock.h"
#include "runtime/host/host_program.h"
#include "runtime/host/initial.h"
#include "runtime/host/strided.h"
#include "runtime/shards.h"
#include "weft/error.h"

namespace weft {

comm::Memory HostDevice::allocate(std::size_t bytes, MemoryUse use) {
  internal_check(use == MemoryUse::kVariables, "a device gives out memory for variables; the rest is its own");
  variable_bytes_ += static_cast<std::int64_t>(bytes);
  return variables_.allocate(bytes);
}

std::int64_t HostDevice::allocated(MemoryUse use) const {
  if (use == MemoryUse::kVariables) return variable_bytes_;
  if (use == MemoryUse::kArena) return static_cast<std::int64_t>(arena_.bytes());
  return workers_.scratch_bytes();
}

void HostDevice::write(std::span<const std::byte> from, void* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

void HostDevice::read(const void* from, std::span<std::byte> to) {
  if (!to.empty()) std::memcpy(to.data(), from, to.size());
}

void HostDevice::upload(const Array& whole, const Value& value, void* shard) {
  copy_to_shard(whole, value, mesh_, processor_, shard);
}

void HostDevice::download(const void* shard, const Value& value, Array& whole) {
  copy_from_shard(shard, value, mesh_, processor_, whole);
}

void HostDevice::fill(void* shard, const Value& value, const std::string& name, const Init& init, std::uint64_t seed) {
  TensorView view = dense_view(shard, value.dtype, value.shape);
  view.begin = shard_begin(value.shape, value.sharding, mesh_, processor_);
  const Shape whole = global_shape(value.shape, value.sharding, mesh_);
  for (std::size_t d = 0; d < whole.rank(); ++d) view.whole[d] = whole[d].size;
  fill_initial(view, name, init, seed, workers_);
}

std::int64_t HostDevice::now() const { return host_now(); }

std::unique_ptr<BoundProgram> HostDevice::bind(std::shared_ptr<const Compiled> compiled,
                                               const std::vector<void*>& variables, const Checks& checks) {
  arena_.grow(static_cast<std::size_t>(compiled->arena_bytes()));
  return std::make_unique<HostProgram>(std::move(compiled), *this, arena_.data(), variables, checks);
}

}  // namespace weft
