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
  save_.push_back([from, to] { copy_elements(from, to); });
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
    commit_.push_back([from, to = views_[at(variable.value)]] { copy_elements(from, to); });
  }
  for (const ProgramOutput& output : program_.outputs)
    if (!commit_.empty() && from_variables.contains(output.value) && !outputs_.contains(output.value))
      outputs_[output.value] = saved(output.value).data;
}

// "processor 3 (data=1 model=1) of mesh data:2 model:2, digits.cc:12 einsum".
std::string BoundProgram::place_of(const Instr& instr) const {
  return str("processor ", processor_, " (", coordinates_text(program_.mesh, processor_), ") of mesh ", program_.mesh,
             ", ", join(instr.origin.causes, ", "));
}

// "all_reduce of 'loss'".
std::string BoundProgram::name_and_tensor(const Instr& instr) const {
  const std::vector<ValueId>& named = instr.outputs.empty() ? instr.inputs : instr.outputs;
  return named.empty() ? name_of(instr) : str(name_of(instr), " of '", program_.values[at(named[0])].name, "'");
}

std::string BoundProgram::doing() const {
  const Instr* instr = current_.load();
  return instr ? str(name_and_tensor(*instr), ", ", join(instr->origin.causes, ", ")) : "";
}

void BoundProgram::fail(const Instr& instr, const std::string& reason) {
  const std::string what = str(name_and_tensor(instr), " failed: ", reason), where = place_of(instr);
  wire_.abort(str(what, " (", where, ")"));
  throw RunError(
      {.what = what, .where = where, .fix = "mend the cause above; the session cannot go on and a new one is needed"});
}

void BoundProgram::run_kernel(const Instr& instr, const Kernel& kernel, const StepState& state) {
  try {
    kernel(state);
  } catch (const RunError& error) {
    const std::string causes = join(instr.origin.causes, ", ");
    const bool is_of_the_wire = is_collective(instr) && error.text().where.text.find(causes) != std::string::npos;
    if (!is_of_the_wire) fail(instr, error.text().what);
    throw;  // the wire has told everyone
  } catch (const Error& error) {
    fail(instr, error.text().what);
  } catch (const std::exception& error) {
    fail(instr, error.what());
  } catch (...) {
    fail(instr, "something was thrown that is no std::exception");
  }
}

void BoundProgram::run(const RunContext& context) {
  const bool hands_over = context.host && processor_ == context.host_processor;
  const StepState state{context.seed, context.step, context.deadline, hands_over ? &context.host : nullptr};
  for (const auto& [instr, kernel] : kernels_) {
    current_.store(instr, std::memory_order_relaxed);
    run_kernel(*instr, kernel, state);
  }
  current_.store(nullptr, std::memory_order_relaxed);
  for (const auto& save : save_) save();
  for (const auto& commit : commit_) commit();
}

}  // namespace weft
