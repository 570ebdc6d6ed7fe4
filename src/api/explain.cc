// The numbers of an explanation, counted on the compiled program and the graph.
#include "weft/explain.h"

#include <algorithm>
#include <future>

#include "api/compile.h"
#include "api/explain_parts.h"
#include "base/index.h"
#include "base/str.h"
#include "language/op_def.h"
#include "program/memory_plan.h"
#include "program/text.h"

namespace weft {

namespace {

// The nominal flops of every op that the fetches, updates and metrics stand on.
double model_flops(const GraphData& graph, const CompileOptions& options) {
  std::vector<NodeId> open;
  for (const Tensors* wanted : {&options.fetch, &options.update})
    for (const Tensor& x : *wanted) open.push_back(x.id().node);
  if (options.metrics)
    for (TensorId id : graph.metrics) open.push_back(id.node);
  Indexed<NodeId, bool> is_needed(graph.nodes.size());
  double sum = 0;
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (is_needed[n]) continue;
    is_needed[n] = true;
    const Node& node = graph.nodes[n];
    for (TensorId input : node.inputs) open.push_back(input.node);
    if (node.recompute == 0) sum += node.op->flops(call_of(graph, node));
  }
  return sum;
}

// Seconds of one processor's own work; what collectives do is counted apart.
double work_seconds(const Program& p, const Machine& machine) {
  double sum = 0;
  for (const Instr& instr : p.body) {
    if (is_collective(instr)) continue;
    const Cost cost = cost_of(p, instr);
    sum += std::max(cost.flops / machine.peak(), cost.bytes / machine.bytes_per_second);
  }
  return sum;
}

// The same axes with one processor along each: layouts, those of single tensors too, name axes that must exist.
Mesh one_processor(const Mesh& mesh) {
  std::vector<Axis> axes = mesh.axes();
  for (Axis& axis : axes) axis.size = 1;
  return Mesh(axes);
}

// Seconds of the work of one processor that does it all.
double seconds_alone(const Graph& graph, const Mesh& mesh, const Layout& layout, CompileOptions options,
                     const Machine& machine, const Store& store, const Engine& engine) {
  options.dump = {};
  options.memory_bytes = 0;
  return work_seconds(lowered_program(graph, one_processor(mesh), layout, options, store, engine), machine);
}

Explanation::Placed placed(const Program& p, ValueId id, std::string name, const char* use) {
  const Value& v = p.values[id];
  return {.name = std::move(name),
          .use = use,
          .dtype = v.dtype,
          .whole = global_shape(v.shape, v.sharding, p.mesh),
          .shard = v.shape,
          .split = v.sharding.dims,
          .partial = v.sharding.partial,
          .bytes = bytes_of(v)};
}

// Every value with storage of its own, and every output.
std::vector<Explanation::Placed> placed_tensors(const Program& p) {
  std::vector<Explanation::Placed> all;
  ByValue<bool> listed(p.values.size());
  const auto is_new = [&](ValueId id) {
    const bool before = listed[id];
    listed[id] = true;
    return !before;
  };
  const auto add = [&](ValueId id, const std::string& name, const char* use) {
    if (is_new(id)) all.push_back(placed(p, id, name, use));
  };
  for (const ProgramVariable& v : p.variables) add(v.value, v.name, "variable");
  for (const ProgramInput& input : p.inputs) add(input.value, input.name, "input");
  for (const ProgramOutput& output : p.outputs) add(output.value, output.name, "output");
  visit_bodies(p, [&](const Program& body, std::int64_t) {
    for (const Instr& instr : body.body) {
      if (is_view(instr)) continue;
      for (ValueId id : instr.outputs)
        if (&body != &p || is_new(id)) all.push_back(placed(body, id, body.values[id].name, "value"));
    }
  });
  return all;
}

void count_memory(const Compiled& compiled, Explanation& e) {
  const Program& p = compiled.program;
  e.arena_bytes = compiled.arena_bytes();
  e.live_bytes = compiled.plan.live_bytes;
  e.workspace_bytes = compiled.workspace_bytes();
  e.variable_bytes = compiled.variable_bytes();
  for (const ProgramVariable& variable : p.variables) {
    if (!variable.trainable) continue;
    const Value& v = p.values[variable.value];
    e.parameters_per_processor += v.shape.elements();
    e.parameters += global_shape(v.shape, v.sharding, p.mesh).elements();
  }
}

void count_work(const Program& p, Explanation& e) {
  const ProgramCost cost = summarize(p);
  for (std::size_t phase = 0; phase < cost.contract_flops.size(); ++phase)
    e.contract_flops[name_of(static_cast<Phase>(phase))] = cost.contract_flops[phase];
  e.executed_flops = cost.flops;
  e.recomputed_flops = cost.recomputed_flops;
  visit_bodies(p, [&](const Program& body, std::int64_t) { e.instructions += static_cast<int>(body.body.size()); });
  e.collectives = collectives_of(cost);
}

// Ahead of time both accounts are shown; otherwise the compiler's stands in place of the plan.
void take_compiler(const CompilerMemory& from, Explanation& e) {
  e.compiler = {.name = from.compiler,
                .arguments = from.arguments,
                .outputs = from.outputs,
                .aliased = from.aliased,
                .temporaries = from.temporaries,
                .code = from.code,
                .peak = from.peak,
                .seconds = from.seconds,
                .cpu_seconds = from.cpu_seconds,
                .topology = from.topology,
                .refusal = from.refusal,
                .executable = from.executable};
  if (!from.topology.empty()) return;
  e.arena_bytes = e.live_bytes = arena_bytes(from, e.variable_bytes);
  e.workspace_bytes = 0;
}

}  // namespace

std::vector<Explanation::Collective> collectives_of(const ProgramCost& cost) {
  std::vector<Explanation::Collective> all;
  for (const CollectiveCost& c : cost.collectives)
    all.push_back({.kind = c.kind,
                   .axes = split_words(c.axes, "+"),
                   .dtype = c.dtype,
                   .phase = name_of(c.phase),
                   .elements = c.elements,
                   .bytes = c.bytes,
                   .count = c.count,
                   .cause = c.causes});
  return all;
}

Explanation explain(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                    const Machine& machine, const Store& store, const device::Choice& device) {
  if (!(machine.peak() > 0 && machine.bytes_per_second > 0))
    throw UserError({.code = "explain.bad-machine-rates",
                     .what = str("a machine cannot have ", machine.peak(), " flops and ", machine.bytes_per_second,
                                 " bytes per second"),
                     .where = "explain",
                     .fix = "give rates above zero, or use measure_machine()"});
  const Engine& engine = engine_named(device.name, "explain", device.plugin, device.nondeterministic, device.over_nccl);
  std::future<double> alone;  // meanwhile
  if (mesh.size() > 1 || options.memory_bytes > 0)
    alone = std::async(std::launch::async,
                       [&] { return seconds_alone(graph, mesh, layout, options, machine, store, engine); });
  const auto shared = std::make_shared<const Compiled>(compile_program(graph, mesh, layout, options, store, engine));
  const Compiled& compiled = *shared;
  const Program& p = compiled.program;
  Explanation e;
  e.mesh = mesh;
  e.layout = layout.text();
  e.store = store;
  e.machine = machine;
  count_memory(compiled, e);
  double together = 0;  // seconds of one processor's own work
  std::future<void> counting = std::async(std::launch::async, [&] {
    count_work(p, e);
    e.model_flops = model_flops(*graph.data(), options);
    e.warnings = warnings_of(p, e);
    for (Explanation::Warning& warning : stored_whole(p, *graph.data(), e)) e.warnings.push_back(std::move(warning));
    e.tensors = placed_tensors(p);
    together = work_seconds(p, machine);
  });
  const BindReport bound = engine.describe(shared, {.topology = device.topology});
  counting.get();
  e.scratch_bytes = bound.scratch_bytes;
  if (bound.compiler) take_compiler(*bound.compiler, e);
  e.kernels = kernels_of(bound, machine);
  for (Explanation::Warning& warning : slow_kernels(e, engine.name())) e.warnings.push_back(std::move(warning));
  e.program = [shared] { return to_text(shared->program); };
  if (const double one = alone.valid() ? alone.get() : 0; one > 0) e.work_ratio = together * mesh.size() / one;
  for (const PassTime& time : compiled.times) {
    e.passes.push_back({time.pass, time.seconds});
    e.compile_seconds += time.seconds;
  }
  return e;
}

}  // namespace weft
