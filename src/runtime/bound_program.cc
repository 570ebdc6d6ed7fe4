#include "runtime/bound_program.h"

#include <set>

#include "base/str.h"
#include "program/builder.h"
#include "program/memory_plan.h"
#include "runtime/strided.h"
#include "weft/error.h"

namespace weft {

namespace {

std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

std::size_t bytes_of(const Value& value) {
  return static_cast<std::size_t>(value.shape.elements()) * size_of(value.dtype);
}

std::string coordinates(const Mesh& mesh, int processor) {
  std::vector<std::string> words;
  const std::vector<int> place = mesh.coordinates(processor);
  for (std::size_t i = 0; i < place.size(); ++i) words.push_back(str(mesh.axes()[i].name, "=", place[i]));
  return str("processor ", processor, " (", join(words, " "), ") of mesh ", mesh);
}

}  // namespace

BoundProgram::BoundProgram(const Program& program, int processor, comm::Wire& wire, const Backend& backend,
                           const std::map<ValueId, void*>& held)
    : program_(program), processor_(processor), wire_(wire) {
  place_values(held);
  bind_kernels(backend);
  bind_updates();
}

// One arena, as the memory plan says; variables lie where the session holds them.
void BoundProgram::place_values(const std::map<ValueId, void*>& held) {
  const std::vector<std::vector<std::int64_t>> strides = strides_of(program_);
  const MemoryPlan plan = plan_memory(program_);
  arena_ = wire_.allocate(processor_, static_cast<std::size_t>(plan.arena_bytes));
  for (std::size_t i = 0; i < program_.values.size(); ++i) {
    const Value& value = program_.values[i];
    TensorView view{nullptr,
                    value.dtype,
                    value.shape,
                    strides[i],
                    shard_begin(value.shape, value.sharding, program_.mesh, processor_),
                    {}};
    for (const Dim& dim : global_shape(value.shape, value.sharding, program_.mesh)) view.whole.push_back(dim.size);
    const auto external = held.find(static_cast<ValueId>(i));
    const int storage = plan.storage_of[i];
    if (external != held.end()) view.data = external->second;
    else if (storage != MemoryPlan::kHeld) view.data = arena_.data() + plan.storages[at(storage)].offset;
    views_.push_back(std::move(view));
  }
  for (const Instr& instr : program_.body) {
    if (!is_view(instr)) continue;
    const TensorView& from = views_[at(instr.inputs[0])];
    std::int64_t offset = 0;
    if (const auto* view = instr.as<View>()) offset = view->offset;
    if (const auto* shard = instr.as<Shard>()) {
      const std::size_t dim = from.shape.position(shard->dim);
      offset = program_.mesh.coordinate(processor_, shard->axes) * views_[at(instr.outputs[0])].shape[dim].size *
               from.strides[dim];
    }
    views_[at(instr.outputs[0])].data =
        static_cast<std::byte*>(from.data) + offset * static_cast<std::int64_t>(size_of(from.dtype));
  }
}

void BoundProgram::bind_kernels(const Backend& backend) {
  std::set<std::string> missing;
  for (const Instr& instr : program_.body)
    if (!is_view(instr) && !backend.makers.contains(name_of(instr))) missing.insert(name_of(instr));
  if (!missing.empty())
    throw UserError({.what = str("the runtime '", backend.name, "' has no kernel for: ", join(missing, ", ")),
                     .where = str("program for mesh ", program_.mesh),
                     .fix = "use runtime::reference(), which has them all"});
  for (const Instr& instr : program_.body) {
    if (is_view(instr)) continue;
    KernelArgs args{.program = program_,
                    .instr = instr,
                    .inputs = {},
                    .outputs = {},
                    .processor = processor_,
                    .label = {},
                    .group = {},
                    .workspace = {}};
    for (ValueId id : instr.inputs) args.inputs.push_back(views_[at(id)]);
    for (ValueId id : instr.outputs) args.outputs.push_back(views_[at(id)]);
    if (is_collective(instr))
      args.label = str("of '", program_.values[at(instr.outputs[0])].name, "', ", join(instr.origin.causes, ", "));
    args.group = [this](const Axes& axes) -> comm::Group& {
      std::unique_ptr<comm::Group>& group = groups_[axes];
      if (!group) group = wire_.join(processor_, program_.mesh.group(processor_, axes));
      return *group;
    };
    args.workspace = [this](std::size_t bytes) -> void* {
      workspaces_.push_back(wire_.allocate(processor_, bytes));
      return workspaces_.back().data();
    };
    kernels_.emplace_back(&instr, backend.makers.at(name_of(instr))(args));
  }
}

TensorView BoundProgram::saved(ValueId id) {
  const TensorView& from = views_[at(id)];
  workspaces_.push_back(wire_.allocate(processor_, bytes_of(program_.values[at(id)])));
  const TensorView to = dense_view(workspaces_.back().data(), from.dtype, from.shape);
  save_.emplace_back(from, to);
  return to;
}

// Whatever shares a variable's memory is saved before any variable is written: updates and outputs are of old contents.
void BoundProgram::bind_updates() {
  std::set<ValueId> from_variables;
  for (const ProgramVariable& variable : program_.variables) from_variables.insert(variable.value);
  for (const Instr& instr : program_.body)
    if (is_view(instr) && from_variables.contains(instr.inputs[0])) from_variables.insert(instr.outputs[0]);
  for (const ProgramVariable& variable : program_.variables) {
    if (!variable.update || *variable.update == variable.value) continue;
    TensorView from = views_[at(*variable.update)];
    if (from_variables.contains(*variable.update)) from = saved(*variable.update);
    commit_.emplace_back(from, views_[at(variable.value)]);
  }
  for (const ProgramOutput& output : program_.outputs)
    if (!commit_.empty() && from_variables.contains(output.value) && !outputs_.contains(output.value))
      outputs_[output.value] = saved(output.value).data;
}

void BoundProgram::fail(const Instr& instr, const std::string& reason) {
  const std::string where = coordinates(program_.mesh, processor_);
  wire_.abort(str(where, ": ", reason));
  throw RunError({.what = str(name_of(instr), " failed: ", reason),
                  .where = str(where, ", ", join(instr.origin.causes, ", ")),
                  .fix = "mend the cause above; the session cannot go on and a new one is needed"});
}

void BoundProgram::run(const RunContext& context) {
  const StepState state{context.seed, context.step, context.deadline, context.host ? &context.host : nullptr};
  for (const auto& [instr, kernel] : kernels_) {
    try {
      kernel(state);
    } catch (const Error& error) {
      if (is_collective(*instr)) throw;  // the wire has told everyone, and names who failed
      fail(*instr, error.text().what);
    } catch (const std::exception& error) {
      fail(*instr, error.what());
    } catch (...) {
      fail(*instr, "something was thrown that is no std::exception");
    }
  }
  for (ElementCopy& save : save_) save.run();
  for (ElementCopy& commit : commit_) commit.run();
}

}  // namespace weft
