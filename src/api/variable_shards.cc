// The shards of a session's variables, for checkpoints.
#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/shards.h"
#include "api/state.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft::detail {

std::int64_t VariableShard::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<VariableShard> shards(const Session& session) {
  const SessionState& state = SessionState::of(session);
  std::vector<VariableShard> all;
  for (const auto& [name, held] : state.variables) {
    const Value& value = held.value;
    const Shape whole = global_shape(value.shape, value.sharding, state.mesh());
    std::vector<std::int64_t> sizes;
    for (const Dim& dim : value.shape) sizes.push_back(dim.size);
    for (const ProcessorId p : state.processors->local())
      all.push_back({.variable = name,
                     .slot_of = held.slot_of,
                     .whole = whole,
                     .dtype = value.dtype,
                     .stored = held.stored,
                     .begin = shard_begin(value.shape, value.sharding, state.mesh(), p),
                     .sizes = sizes,
                     .processor = p,
                     .is_primary = is_primary_shard(value, state.mesh(), p)});
  }
  return all;
}

namespace {

// The memory of a shard that has so many bytes.
void* memory_of(SessionState& session, const VariableShard& shard, std::size_t bytes) {
  session.processors->make_ready();
  const SessionVariable& variable = session.variable(shard.variable);
  const std::vector<ProcessorId>& local = session.processors->local();
  internal_check(std::find(local.begin(), local.end(), shard.processor) != local.end(),
                 "the shard of a processor of another process");
  internal_check(static_cast<std::int64_t>(bytes) == bytes_of(variable.value),
                 "a shard's bytes are not as many as it has");
  return variable.on(shard.processor);
}

}  // namespace

void read_shard(const Session& session, const VariableShard& shard, std::span<std::byte> out) {
  SessionState& state = SessionState::of(session);
  const void* from = memory_of(state, shard, out.size());
  state.processors->device(shard.processor).read(from, out);
}

void write_shard(Session& session, const VariableShard& shard, std::span<const std::byte> in) {
  SessionState& state = SessionState::of(session);
  void* to = memory_of(state, shard, in.size());
  ++state.variables.at(shard.variable).changes;
  state.processors->device(shard.processor).write(in, to);
}

std::uint64_t changes(const Session& session, const std::string& variable) {
  return SessionState::of(session).variable(variable).changes;
}

std::int64_t panel_lanes(const Session& session) {
  return SessionState::of(session).processors->engine().target().panel_lanes;
}

bool queues_steps(const Session& session) {
  return queues_steps(device::Choice{SessionState::of(session).processors->engine().name()});
}

bool queues_steps(const device::Choice& device) { return device.name == device::cuda().name; }

std::int64_t panel_lanes(const device::Choice& device) {
  return engine_named(device.name, "panel_lanes", device.plugin, device.nondeterministic).target().panel_lanes;
}

}  // namespace weft::detail
