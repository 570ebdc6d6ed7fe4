#include "runtime/processors.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/str.h"
#include "runtime/runner.h"
#include "runtime/shards.h"
#include "weft/error.h"

namespace weft {

namespace {

std::unique_ptr<comm::Wire> checked(std::unique_ptr<comm::Wire> wire, const Mesh& mesh) {
  if (wire->size() == mesh.size()) return wire;
  const auto are = [](int n, const char* one, const char* many) { return str(n, " ", n == 1 ? one : many); };
  throw UserError({.code = "mpi.mesh-size-mismatch",
                   .what = str("mesh ", mesh.axes().empty() ? "\"\"" : mesh.text(), " has ",
                               are(mesh.size(), "processor", "processors"), ", but mpirun started ",
                               are(wire->size(), "process", "processes")),
                   .where = "Session, wire::mpi()",
                   .fix = str("run `mpirun -n ", mesh.size(), " …`, or choose a mesh of ", wire->size())});
}

}  // namespace

Processors::Processors(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
                       const ProcessorOptions& options)
    : mesh_(mesh),
      options_(options),
      wire_(checked(std::move(wire), mesh)),
      local_(wire_->local()),
      engine_(engine),
      devices_(engine.open(*wire_, mesh_, {.workers = options.workers})),
      threads_(std::make_unique<ProcessorThreads>(local_)) {
  if (static_cast<int>(local_.size()) == mesh.size()) return;
  gatherers_.resize(static_cast<std::size_t>(mesh.size()));
  on_each([&](ProcessorId p) { gatherers_[p] = std::make_unique<Gatherer>(mesh_, *wire_, p); });
}

void Processors::make_ready() {
  if (const std::shared_ptr<PendingStep> step = pending_.lock()) step->finish();
  if (!failure_.empty())
    throw RunError({.code = "session.unusable",
                    .what = str("this session is unusable since a run failed: ", failure_),
                    .where = str("session on mesh ", mesh_),
                    .fix = "make a new Session"});
}

void Processors::begin_step(const std::shared_ptr<PendingStep>& step, ProcessorThreads::Job job) {
  pending_ = step;
  threads_->begin(std::move(job));
}

VariableMemory Processors::allocate(const Value& value) {
  VariableMemory variable{value, Indexed<ProcessorId, comm::Memory>(at(mesh_.size()))};
  on_each([&](ProcessorId p) {
    variable.shards[p] = device(p).allocate(static_cast<std::size_t>(bytes_of(value)), MemoryUse::kVariables);
  });
  return variable;
}

void Processors::upload(const Array& whole, VariableMemory& variable) {
  on_each([&](ProcessorId p) { device(p).upload(whole, variable.value, variable.on(p)); });
}

Array Processors::gather(const Value& value, const std::string& what,
                         const std::function<const void*(ProcessorId)>& shard) {
  Array whole = room_for(value);
  const auto gather = [&](ProcessorId p) { gather_on(p, value, shard(p), what, whole); };
  if (all_are_local()) std::for_each(local_.begin(), local_.end(), gather);
  else on_each(gather);
  return whole;
}

Array Processors::gather(const VariableMemory& variable, const std::string& what) {
  return gather(variable.value, what, [&](ProcessorId p) { return variable.on(p); });
}

Array Processors::room_for(const Value& value) const {
  return Array(global_shape(value.shape, value.sharding, mesh_), value.dtype);
}

void Processors::gather_on(ProcessorId processor, const Value& value, const void* shard, const std::string& what,
                           Array& whole) {
  if (!all_are_local())
    gatherers_[processor]->gather(device(processor), value, shard, processor == first() ? &whole : nullptr, what,
                                  deadline());
  else if (is_primary_shard(value, mesh_, processor)) device(processor).download(shard, value, whole);
}

std::vector<std::int64_t> Processors::gather_numbers(
    std::int64_t count, const std::string& what,
    const std::function<const std::int64_t*(ProcessorId processor)>& numbers) {
  std::vector<std::int64_t> result(static_cast<std::size_t>(count * mesh_.size()));
  const auto gather = [&](ProcessorId p) {
    const std::span own(numbers(p), static_cast<std::size_t>(count));
    if (all_are_local()) std::copy(own.begin(), own.end(), result.begin() + p.number() * count);
    else gatherers_[p]->gather_numbers(own, p == first() ? &result : nullptr, what, deadline());
  };
  if (all_are_local()) std::for_each(local_.begin(), local_.end(), gather);
  else on_each(gather);
  return result;
}

}  // namespace weft
