#include "runtime/host/place_values.h"

#include "base/index.h"
#include "program/builder.h"

namespace weft {

ByValue<TensorView> place_values(const Program& program, const MemoryPlan& plan, ProcessorId processor,
                                 std::byte* arena, const std::map<ValueId, void*>& held) {
  ByValue<std::vector<std::int64_t>> strides = strides_of(program);
  ByValue<TensorView> views(program.values.size());
  const auto place = [&](ValueId id) {
    const Value& value = program.values[id];
    TensorView& view = views[id];
    view = {nullptr,
            value.dtype,
            value.shape,
            std::move(strides[id]),
            shard_begin(value.shape, value.sharding, program.mesh, processor),
            {}};
    view.whole.reserve(value.shape.rank());
    for (std::size_t d = 0; d < value.shape.rank(); ++d)
      view.whole.push_back(value.shape[d].size * program.mesh.size(value.sharding.dims[d]));
    const auto external = held.find(id);
    const int storage = plan.storage_of[id];
    if (external != held.end()) view.data = external->second;
    else if (storage != MemoryPlan::kExternal) view.data = arena + plan.storages[at(storage)].offset;
  };
  for (const ProgramInput& input : program.inputs) place(input.value);
  for (const ProgramVariable& variable : program.variables) place(variable.value);
  for (const Instr& instr : program.body)
    for (const ValueId id : instr.outputs) place(id);
  for (const auto& [next, last] : plan.over) views[next].data = views[last].data;
  for (const Instr& instr : program.body) {
    if (!is_view(instr)) continue;
    const TensorView& from = views[instr.inputs[0]];
    std::int64_t offset = 0;
    if (const auto* view = instr.as<View>()) offset = view->offset;
    if (const auto* shard = instr.as<Shard>()) {
      const std::size_t dim = from.shape.position(shard->dim);
      offset =
          program.mesh.coordinate(processor, shard->axes) * views[instr.outputs[0]].shape[dim].size * from.strides[dim];
    }
    views[instr.outputs[0]].data =
        static_cast<std::byte*>(from.data) + offset * static_cast<std::int64_t>(size_of(from.dtype));
  }
  return views;
}

}  // namespace weft
