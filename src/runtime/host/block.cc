#include "runtime/host/block.h"

#include <set>

#include "base/index.h"
#include "base/str.h"
#include "program/builder.h"
#include "runtime/host/checks.h"
#include "runtime/host/host_clock.h"
#include "runtime/host/place_values.h"
#include "runtime/host/strided.h"
#include "runtime/processor_names.h"
#include "weft/error.h"

namespace weft {

comm::Group& Binder::group(const Mesh& mesh, const Axes& axes) {
  std::unique_ptr<comm::Group>& group = groups_[axes];
  if (!group) group = wire().join(processor(), mesh.group(processor(), axes));
  return *group;
}

void Binder::number(std::vector<BoundInstr>& steps) {
  for (BoundInstr& step : steps) {
    step.number = static_cast<std::int64_t>(steps_.size());
    steps_.push_back(&step);
  }
}

Block::Block(const Program& program, const MemoryPlan& plan, std::byte* arena, const std::map<ValueId, void*>& held,
             Binder& binder)
    : program_(program), binder_(binder), views_(place_values(program, plan, binder.processor(), arena, held)) {
  bind(plan, arena);
  binder_.number(steps_);
}

void Block::bind(const MemoryPlan& plan, std::byte* arena) {
  std::set<ValueId> finished;  // by a done of their own
  for (const Instr& instr : program_.body)
    if (instr.is<Done>()) finished.insert(instr.inputs[0]);
  steps_.reserve(program_.body.size());
  std::map<ValueId, BoundInstr> dones;  // by the first output of the collective
  for (int i = 0; i < static_cast<int>(program_.body.size()); ++i) {
    const Instr& instr = program_.body[at(i)];
    std::string served_by = binder_.engine_name();
    const auto add = [&](Kernel kernel) {
      steps_.push_back({{&program_, &instr, false, served_by}, std::move(kernel)});
    };
    if (is_view(instr)) continue;
    if (is_collective(instr)) {
      BoundCollective talk = binder_.table().collectives.at(name_of(instr))(args_of(i, plan, arena));
      add(std::move(talk.start));
      BoundInstr done{{&program_, &instr, true, served_by}, checked(std::move(talk.done), instr)};
      if (finished.contains(instr.outputs[0])) dones[instr.outputs[0]] = std::move(done);
      else steps_.push_back(std::move(done));
    } else if (instr.is<Done>()) {
      steps_.push_back(std::move(dones.at(instr.inputs[0])));
    } else if (instr.is<Loop>()) {
      const MemoryPlan::Inner& inner = plan.loops.at(i);
      add(bound_loop(instr, inner.plan[0], arena + inner.offset));
    } else {
      KernelArgs args = args_of(i, plan, arena);
      args.served_by = &served_by;
      Kernel kernel = binder_.table().kernels.at(name_of(instr))(args);
      add(checked(std::move(kernel), instr));
    }
  }
}

namespace {

// Gives out the storage of a workspace, piece by piece; copies give out the same storage.
std::function<void*(std::size_t)> workspace_of(const MemoryPlan& plan, int position, std::byte* arena) {
  const auto found = plan.workspaces.find(position);
  if (found == plan.workspaces.end())
    return [](std::size_t) -> void* { throw InternalError("a kernel asks for workspace and none was planned"); };
  const Storage storage = plan.storages[at(found->second)];
  auto used = std::make_shared<std::int64_t>(0);
  return [storage, used, begin = arena + storage.offset](std::size_t bytes) -> void* {
    std::byte* piece = begin + *used;
    *used += host_aligned(static_cast<std::int64_t>(bytes));
    internal_check(*used <= storage.bytes, "a kernel asks for more workspace than was planned");
    return piece;
  };
}

}  // namespace

KernelArgs Block::args_of(int position, const MemoryPlan& plan, std::byte* arena) const {
  const Instr& instr = program_.body[at(position)];
  KernelArgs args{.program = program_,
                  .instr = instr,
                  .inputs = {},
                  .outputs = {},
                  .processor = binder_.processor(),
                  .label = {},
                  .group = {},
                  .workers = &binder_.workers(),
                  .workspace = workspace_of(plan, position, arena),
                  .served_by = nullptr};
  args.inputs.reserve(instr.inputs.size());
  args.outputs.reserve(instr.outputs.size());
  for (ValueId id : instr.inputs) args.inputs.push_back(views_[id]);
  for (ValueId id : instr.outputs) args.outputs.push_back(views_[id]);
  if (is_collective(instr))
    args.label = str("of '", program_.values[instr.outputs[0]].name, "', ", join(instr.origin.causes, ", "));
  args.group = [this](const Axes& axes) -> comm::Group& { return binder_.group(program_.mesh, axes); };
  return args;
}

// With the checks that are asked for. A loop's body is a block, which has its own.
Kernel Block::checked(Kernel kernel, const Instr& instr) const {
  if (binder_.checks().finite) kernel = with_finite_check(std::move(kernel), instr);
  if (!binder_.checks().ids || !looks_up_ids(instr)) return kernel;
  const std::string& dim = instr.as<Gather>()->dim;
  return [kernel = std::move(kernel), table = view(instr.inputs[0]), ids = view(instr.inputs[1]), dim,
          name = program_.values[instr.inputs[1]].name](const StepState& state) {
    if (const std::string found = id_out_of_range(table, ids, dim); !found.empty())
      throw RunError({.code = "run.id-out-of-range", .what = str("'", name, "' has ", found), .where = "", .fix = ""});
    kernel(state);
  };
}

// What the instruction makes of finite numbers must be finite.
Kernel Block::with_finite_check(Kernel kernel, const Instr& instr) const {
  const auto named = [&](const std::vector<ValueId>& ids) {
    std::vector<std::pair<std::string, TensorView>> views;
    for (const ValueId id : ids)
      if (is_float(program_.values[id].dtype)) views.emplace_back(program_.values[id].name, views_[id]);
    return views;
  };
  return [kernel = std::move(kernel), inputs = named(instr.inputs),
          outputs = named(instr.outputs)](const StepState& state) {
    std::string before;
    for (const auto& [name, view] : inputs)
      if (before.empty())
        before = not_finite(view).empty() ? "" : str("its operand '", name, "' has ", not_finite(view));
    kernel(state);
    for (const auto& [name, view] : outputs)
      if (const std::string found = not_finite(view); !found.empty())
        throw RunError(
            {.code = "run.not-finite",
             .what = str("'", name, "' has ", found, before.empty() ? ", made of finite numbers" : "; ", before),
             .where = "",
             .fix = ""});
  };
}

// The carried values lie where the loop's outputs do; what the body writes elsewhere is moved there after each trip.
Kernel Block::bound_loop(const Instr& instr, const MemoryPlan& plan, std::byte* arena) {
  const Loop& loop = *instr.as<Loop>();
  const Program& body = *loop.body;
  const std::size_t carried = instr.outputs.size();
  std::map<ValueId, void*> held;
  std::vector<ElementCopy> first, next;
  for (std::size_t i = 0; i < instr.inputs.size(); ++i)
    held[body.inputs[i + 1].value] = views_[i < carried ? instr.outputs[i] : instr.inputs[i]].data;
  for (std::size_t k = 0; k < carried; ++k)
    if (view(instr.inputs[k]).data != view(instr.outputs[k]).data)
      first.emplace_back(view(instr.inputs[k]), view(instr.outputs[k]));
  auto block = std::make_shared<Block>(body, plan, arena, held, binder_);
  for (const auto& [k, how] : plan.moves) {
    using How = MemoryPlan::Move::How;
    const TensorView &made = block->view(body.outputs[k].value), &place = view(instr.outputs[k]);
    const auto saved = [&] {
      return dense_view(arena + plan.storages[at(plan.ring_storage)].offset, place.dtype, place.shape);
    };
    next.emplace_back(how == How::kPlaceSaved ? saved() : made, how == How::kSave ? saved() : place);
  }
  auto* iteration = static_cast<std::int64_t*>(block->view(body.inputs[0].value).data);
  const auto* stop = loop.stops ? static_cast<const bool*>(block->view(body.outputs.back().value).data) : nullptr;
  return [=, trips = loop.trips](const StepState& state) mutable {
    for (ElementCopy& move : first) move.run();
    for (std::int64_t i = 0; i < trips; ++i) {
      *iteration = i;
      block->run(state);
      const bool stops = stop && *stop;
      for (ElementCopy& move : next) move.run();
      if (stops) break;
    }
  };
}

std::string Binder::doing() const {
  const BoundInstr* step = current_.load();
  return step ? str(step->name_and_tensor(), ", ", step->lines()) : "";
}

void Block::fail(const BoundInstr& step, const std::string& cause, const std::string& code) const {
  comm::Failure failure{.kind = comm::Failure::Kind::kInstruction,
                        .processor = binder_.processor(),
                        .instruction = name_of(*step.instr),
                        .tensor = step.tensor(),
                        .lines = step.lines(),
                        .cause = cause,
                        .code = code};
  binder_.wire().abort(failure);
  throw comm::FailureError(std::move(failure), {}, processor_names(program_.mesh));
}

void Block::run_step(const BoundInstr& step, const StepState& state) const {
  try {
    step.kernel(state);
  } catch (const comm::FailureError& error) {  // of the wire or of a loop's body: the wire is aborted
    throw error.named(processor_names(program_.mesh));
  } catch (const Error& error) {
    fail(step, error.text().what, error.text().code.text);
  } catch (const std::exception& error) {
    fail(step, error.what());
  } catch (...) {
    fail(step, "something was thrown that is no std::exception");
  }
}

void Block::run(const StepState& state) const {
  for (const BoundInstr& step : steps_) {
    binder_.now_at(&step);
    const TraceSpan span(binder_.trace(), step.number);
    run_step(step, state);
  }
  binder_.now_at(nullptr);
}

}  // namespace weft
