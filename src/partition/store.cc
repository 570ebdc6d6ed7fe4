#include "partition/store.h"

#include <algorithm>

#include "base/str.h"
#include "language/op_def.h"
#include "layout/rule.h"
#include "partition/reshard_moves.h"
#include "weft/error.h"

namespace weft {

namespace {

bool is_assign(const Node& node) { return node.op->name == "assign"; }

DimAxes by_name(const Shape& shape, const Sharding& sharding) {
  DimAxes axes;
  for (std::size_t i = 0; i < shape.rank(); ++i) axes.set(shape[i].name, sharding.dims[i]);
  return axes;
}

// Any split of any dim passes through the op, and its single output has all its dims.
bool is_pointwise(const GraphData& graph, const Node& node) {
  if (node.outputs.size() != 1 || node.op->name == "variable" || is_assign(node)) return false;
  const OpCall call = call_of(graph, node);
  const ShardingRule rule = node.op->sharding(call);
  if (rule.reshards_output || !rule.dims.empty()) return false;
  return std::all_of(call.inputs.begin(), call.inputs.end(),
                     [&](const TensorType& input) { return input.shape.minus(node.outputs[0].shape).empty(); });
}

// The number of leading operands that a run of the op reads; the rest is only for its gradient.
std::ptrdiff_t reads(const Node& node) {
  const std::string& op = node.op->name;
  const bool passes_on = op == "custom_gradient" || op == "recompute" || op == "reversible";
  return static_cast<std::ptrdiff_t>(passes_on ? node.outputs.size() : node.inputs.size());
}

// The members of `axes` that split nothing yet.
Axes unused(const Axes& axes, const Sharding& sharding) {
  Axes rest;
  for (int axis : axes)
    if (!sharding.uses(axis)) rest.push_back(axis);
  return rest;
}

// The rules that name dims of the shape.
DimAxes named_rules(const DimAxes& rules, const Shape& shape) {
  DimAxes named;
  for (const auto& [dim, axes] : rules)
    if (shape.has(dim)) named.set(dim, axes);
  return named;
}

void split_first_that_divides(const Axes& star, const DimAxes& named, const Shape& shape, const Mesh& mesh,
                              Sharding& sharding) {
  const Axes axes = unused(star, sharding);
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    const auto rule = named.find(shape[i].name);
    const bool left_alone = rule != named.end() && rule->second.empty();
    if (left_alone || shape[i].size % (mesh.size(sharding.dims[i]) * mesh.size(axes)) != 0) continue;
    append(sharding.dims[i], axes);
    return;
  }
}

}  // namespace

bool is_stored_split(const Store& store, const VariableOptions& options) {
  return store.level() >= 1 && (!options.slot_of.empty() || (options.trainable && store.level() >= 3));
}

bool is_updated_split(const Store& store, const VariableOptions& options) {
  return store.level() >= 1 && (!options.slot_of.empty() || options.trainable);
}

bool is_update(const Node& node) { return node.phase == Phase::kUpdate || is_assign(node); }

Sharding stored_sharding(const DimAxes& rules, const Shape& shape, const Sharding& compute, const Mesh& mesh,
                         const SubjectMaker& subject) {
  const DimAxes named = named_rules(rules, shape);
  check_one_dim_per_axis(named, shape, mesh, subject);
  Sharding result = compute;
  for (std::size_t i = 0; i < shape.rank(); ++i)
    if (const auto rule = named.find(shape[i].name); rule != named.end())
      append(result.dims[i], unused(rule->second, result));
  if (const auto star = rules.find(kEveryDim); star != rules.end())
    split_first_that_divides(star->second, named, shape, mesh, result);
  return sharding_of(by_name(shape, result), shape, mesh, subject);
}

StorePlan::StorePlan(const Request& r) {
  for (const NodeId n : r.needed)
    if (r.graph.nodes[n].op->name == "variable") add_variable(r, n);
  // A node comes after its operands: in reverse order, all requests for a tensor are known when its op is reached.
  for (auto n = r.needed.rbegin(); n != r.needed.rend(); ++n) {
    add_assign(r, *n);
    flow(r, *n);
    const Node& node = r.graph.nodes[*n];
    if (!is_update(node) && !axes_.contains(*n))
      elsewhere_.insert(node.inputs.begin(), node.inputs.begin() + reads(node));
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
      if (want({*n, i}) && is_summed_in_shards(r, {*n, i})) sums_.insert({*n, i});
  }
}

const DimAxes* StorePlan::axes(NodeId node) const {
  const auto found = axes_.find(node);
  return found == axes_.end() ? nullptr : &found->second;
}

const Sharding* StorePlan::want(TensorId id) const {
  const auto found = wants_.find(id);
  return found == wants_.end() ? nullptr : &found->second;
}

bool StorePlan::is_held_split(const GraphData& graph, TensorId id) const {
  return !held_.empty() && held_.contains(variable_of(graph, id));
}

void StorePlan::add_variable(const Request& r, NodeId n) {
  const Node& node = r.graph.nodes[n];
  const auto& options = node.attrs.get<VariableOptions>("options");
  if (!is_updated_split(r.store, options)) return;
  const Shape& shape = node.outputs[0].shape;
  const std::string place = str("variable at ", to_string(node.site));
  const Sharding compute = sharding_of(r.global, shape, r.mesh, [&] {
    return Subject{str("tensor '", node.name, "'"), place, r.layout.text()};
  });
  const auto who = [&] {
    return Subject{str("stored variable '", node.name, "'"), str(place, ", storage layout \"", r.store.text(), "\""),
                   r.layout.text()};
  };
  const Sharding stored = stored_sharding(r.rules, shape, compute, r.mesh, who);
  if (stored == compute) return;
  updates_[n] = by_name(shape, stored);
  if (!is_stored_split(r.store, options)) return;
  axes_[n] = updates_[n];
  held_.insert(n);
}

void StorePlan::add_assign(const Request& r, NodeId n) {
  const Node& node = r.graph.nodes[n];
  if (!is_assign(node)) return;
  const auto found = updates_.find(node.inputs[0].node);
  if (found == updates_.end()) return;
  axes_[n] = found->second;
  propose(r, node.inputs[1], found->second);
}

// From level 2 on, a loop's sum that only the update reads is scattered in every iteration.
bool StorePlan::is_summed_in_shards(const Request& r, TensorId id) const {
  return r.store.level() >= 2 && r.graph.node(id).op->name == "loop" && !elsewhere_.contains(id);
}

void StorePlan::flow(const Request& r, NodeId n) {
  const Node& node = r.graph.nodes[n];
  const Sharding* wanted = want({n, 0});
  const bool scales_sums =
      !elsewhere_.contains({n, 0}) && !node.inputs.empty() &&
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) { return is_summed_in_shards(r, id); });
  if (!wanted || !(node.phase == Phase::kUpdate || scales_sums) || !is_pointwise(r.graph, node)) return;
  axes_[n] = by_name(node.outputs[0].shape, *wanted);
  wants_.erase({n, 0});
  for (TensorId id : node.inputs) propose(r, id, axes_[n]);
}

// Of two requests the one with the smaller shards is kept. A request that the layout already fulfils is dropped.
void StorePlan::propose(const Request& r, TensorId id, const DimAxes& axes) {
  const Shape& shape = r.graph.type(id).shape;
  Sharding sharding = unsplit(shape), by_layout = sharding;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    sharding.dims[i] = axes.at(shape[i].name);
    if (const auto found = r.global.find(shape[i].name); found != r.global.end()) by_layout.dims[i] = found->second;
  }
  if (sharding == by_layout || is_held_split(r.graph, id)) return;
  const auto [at, added] = wants_.try_emplace(id, sharding);
  const auto elements = [&](const Sharding& s) { return local_shape(shape, s, r.mesh).elements(); };
  if (!added && elements(sharding) < elements(at->second)) at->second = sharding;
}

}  // namespace weft
