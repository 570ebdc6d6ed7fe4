#include "runtime/bound_program.h"

#include <algorithm>

#include "program/memory_plan.h"
#include "runtime/strided.h"

namespace weft {

std::vector<std::unique_ptr<Workers>> make_workers(const comm::Wire& wire, const Engine& engine, int asked) {
  std::vector<std::unique_ptr<Workers>> workers(static_cast<std::size_t>(wire.size()));
  const std::vector<int> local = wire.local();
  const int here = static_cast<int>(local.size()), cores = usable_cores(std::max(1, wire.on_host() / here));
  const int each = &engine == &reference_engine() ? 1 : asked > 0 ? asked : std::max(1, cores / here);
  for (const int p : local)
    workers[static_cast<std::size_t>(p)] = std::make_unique<Workers>(each, each * here <= cores);
  return workers;
}

// One arena, as the memory plan says; variables lie where the session holds them.
BoundProgram::BoundProgram(const Program& program, int processor, comm::Wire& wire, const Engine& engine,
                           const std::map<ValueId, void*>& held, Workers* workers, const Checks& checks)
    : program_(program), binder_(processor, wire, engine, workers ? *workers : alone_, checks) {
  check_engine(program, engine);
  const std::int64_t planning = TraceLog::now();
  const MemoryPlan plan = plan_memory(program, engine.workspace_bytes);
  const std::int64_t allocating = TraceLog::now();
  arena_ = wire.allocate(processor, static_cast<std::size_t>(plan.arena_bytes));
  const std::int64_t binding = TraceLog::now();
  block_ = std::make_unique<Block>(program, plan, arena_.data(), held, binder_);
  bind_updates(plan);
  bind_seconds_ = static_cast<double>(TraceLog::now() - binding + allocating - planning) * 1e-9;
}

// What the plan saves is saved before any variable is written: updates and outputs are of old contents.
void BoundProgram::bind_updates(const MemoryPlan& plan) {
  std::map<ValueId, TensorView> saved;
  for (const auto& [id, storage] : plan.saved_views) {
    const TensorView& from = block_->view(id);
    std::byte* place = arena_.data() + plan.storages[static_cast<std::size_t>(storage)].offset;
    saved[id] = dense_view(place, from.dtype, from.shape);
    save_.emplace_back(from, saved[id]);
  }
  const auto contents = [&](ValueId id) { return saved.contains(id) ? saved.at(id) : block_->view(id); };
  for (const ProgramVariable& variable : program_.variables)
    if (variable.update && *variable.update != variable.value)
      commit_.emplace_back(contents(*variable.update), block_->view(variable.value));
  for (const ProgramOutput& output : program_.outputs)
    if (saved.contains(output.value)) outputs_[output.value] = saved.at(output.value).data;
}

void BoundProgram::run(const RunContext& context) {
  const bool hands_over = context.host && binder_.processor() == context.host_processor;
  TraceLog* log = trace_ && trace_->covers(context.step) ? trace_ : nullptr;
  if (log) log->enter(context.step);
  binder_.trace_to(log);
  binder_.workers().trace_to(log);
  const TraceLog::Span whole(log, TraceRecord::kProgram);
  block_->run({context.seed, context.step, context.deadline, hands_over ? &context.host : nullptr});
  const TraceLog::Span last(save_.empty() && commit_.empty() ? nullptr : log, TraceRecord::kCommit);
  for (ElementCopy& save : save_) save.run();
  for (ElementCopy& commit : commit_) commit.run();
}

}  // namespace weft
