#include "runtime/host/host_program.h"

#include <algorithm>

#include "base/index.h"
#include "runtime/host/host_clock.h"

namespace weft {

HostProgram::HostProgram(std::shared_ptr<const Compiled> compiled, HostDevice& device, std::byte* arena,
                         const std::vector<void*>& variables, const Checks& checks)
    : compiled_(std::move(compiled)), device_(device), binder_(device, checks) {
  const Program& program = compiled_->program;
  std::map<ValueId, void*> external;
  for (std::size_t v = 0; v < program.variables.size(); ++v) external[program.variables[v].value] = variables.at(v);
  block_ = std::make_unique<Block>(program, compiled_->plan, arena, external, binder_);
  bind_updates(arena);
}

// What the plan saves is saved before any variable is written: updates and outputs are of old contents.
void HostProgram::bind_updates(std::byte* arena) {
  const Program& program = compiled_->program;
  const MemoryPlan& plan = compiled_->plan;
  std::map<ValueId, TensorView> saved;
  for (const auto& [id, storage] : plan.saved_views) {
    const TensorView& from = block_->view(id);
    std::byte* place = arena + plan.storages[at(storage)].offset;
    saved[id] = dense_view(place, from.dtype, from.shape);
    save_.emplace_back(from, saved[id]);
  }
  for (const ProgramVariable& variable : program.variables) {
    if (!variable.update || *variable.update == variable.value) continue;
    const auto found = saved.find(*variable.update);
    const TensorView &from = found == saved.end() ? block_->view(*variable.update) : found->second,
                     &to = block_->view(variable.value);
    const bool lies_there = from.data == to.data && from.shape == to.shape && from.strides == to.strides;
    if (!lies_there) commit_.emplace_back(from, to);
  }
  for (const ProgramOutput& output : program.outputs)
    if (saved.contains(output.value)) outputs_[output.value] = saved.at(output.value).data;
}

void* HostProgram::input(std::size_t i) const { return block_->view(compiled_->program.inputs[i].value).data; }

void* HostProgram::output(std::size_t i) const {
  const ValueId id = compiled_->program.outputs[i].value;
  const auto found = outputs_.find(id);
  return found != outputs_.end() ? found->second : block_->view(id).data;
}

std::vector<RunInstr> HostProgram::instructions() const {
  std::vector<RunInstr> all;
  for (const BoundInstr* instr : binder_.steps()) all.push_back(*instr);
  return all;
}

void HostProgram::start(const StepArgs& step) {
  TraceLog* log = trace_ && trace_->covers(step.step) ? trace_ : nullptr;
  if (log) log->enter(step.step);
  binder_.trace_to(log);
  device_.workers().trace_to(log);
  const TraceSpan whole(log, TraceRecord::kProgram);
  block_->run({step.seed, step.step, step.deadline, step.host ? &step.host : nullptr});
  const TraceSpan last(save_.empty() && commit_.empty() ? nullptr : log, TraceRecord::kCommit);
  for (ElementCopy& save : save_) save.run();
  for (ElementCopy& commit : commit_) commit.run();
}

}  // namespace weft
