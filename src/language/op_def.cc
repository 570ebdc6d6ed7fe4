#include "language/op_def.h"

#include <algorithm>
#include <deque>

#include "base/str.h"
#include "language/shape_math.h"

namespace weft {

namespace {

std::deque<OpDef>& catalog() {
  static std::deque<OpDef> ops;
  return ops;
}

// A function takes the graph from its first tensor, which may be empty.
void check_graph(const std::shared_ptr<GraphData>& graph, const OpDef& op, Site site) {
  if (!graph)
    throw UserError({.code = "op.no-operands",
                     .what = str(op.name, " was given no tensor"),
                     .where = str(op.name, " at ", to_string(site)),
                     .fix = "give at least one tensor of a graph (an empty Tensor has no value)"});
}

void check_inputs(const std::shared_ptr<GraphData>& graph, const OpDef& op, const Tensors& inputs, Site site) {
  for (const Tensor& input : inputs) {
    if (!input)
      throw UserError({.code = "op.empty-tensor",
                       .what = str(op.name, " was given an empty tensor"),
                       .where = str(op.name, " at ", to_string(site)),
                       .fix = "leave it out; gradients() returns an empty Tensor for an x that no y depends on"});
    if (input.graph() != graph)
      throw UserError(
          {.code = "op.two-graphs",
           .what = str(op.name, " was given tensors of two graphs ('", input.name(), "' belongs to another graph)"),
           .where = str(op.name, " at ", to_string(site)),
           .fix = "build all operands in one Graph"});
    if (!graph->sees(graph->loop, graph->node(input.id()).loop))
      throw UserError({.code = "op.tensor-inside-loop",
                       .what = str(op.name, " uses '", input.name(), "', which is inside the body of a loop"),
                       .where = str(op.name, " at ", to_string(site)),
                       .fix = "return it from the body, carried or summed, and use the result of loop()"});
  }
}

// Called when the operands of an op do not fit. Inside a microbatch the cause may be an outside tensor with the
// undivided batch.
void check_cut_inputs(const GraphData& graph, const OpDef& op, const Tensors& inputs, Site site) {
  for (int l = graph.loop; l >= 0; l = graph.loops[static_cast<std::size_t>(l)].around) {
    const Dim& batch = graph.loops[static_cast<std::size_t>(l)].batch;
    for (const Tensor& x : inputs)
      if (!batch.name.empty() && x.shape().has(batch) && !graph.sees(graph.node(x.id()).loop, l))
        throw UserError({.code = "op.whole-batch-in-microbatch",
                         .what = str(op.name, " inside a microbatch uses '", x.name(), "' ", x.shape(),
                                     " from outside, which has the whole batch dim ", batch),
                         .where = str(op.name, " at ", to_string(site)),
                         .fix = str("pass '", x.name(), "' in `inputs` and use the part that the function is given")});
  }
}

std::vector<TensorType> types_of(const OpCall& call, const GraphData& graph, const Tensors& inputs) {
  try {
    return call.op->shape(call);
  } catch (const UserError&) {
    check_cut_inputs(graph, *call.op, inputs, call.site);
    throw;
  }
}

// Users may not make dims with reserved names: a result has a reserved dim only if an operand has it.
void check_names(const GraphData& graph, const OpCall& call, const TensorType& output) {
  for (const Dim& dim : output.shape) {
    if (!is_own_dim(dim.name) || graph.own_dims) continue;
    if (std::none_of(call.inputs.begin(), call.inputs.end(),
                     [&](const TensorType& x) { return x.shape.has(dim.name); }))
      throw UserError(
          {.code = "op.reserved-dim",
           .what = str(call.op->name, " gives ", output.shape, ", but dim names that begin with '", kOwnDim,
                       "' are reserved for the library"),
           .where = call.where(),
           .fix = str("give dim '", dim.name, "' another name; if a result of a function has it, rename() it first")});
  }
}

}  // namespace

void check_size(const OpCall& call, const Shape& shape) {
  if (volume(shape) > static_cast<double>(kMostElements))
    throw UserError({.code = "op.result-too-large",
                     .what = str(call.op->name, " gives ", shape, ", a tensor of ", volume(shape), " elements"),
                     .where = call.where(),
                     .fix = str("make its dims smaller: a tensor has at most ", kMostElements, " elements")});
}

Place OpCall::where() const { return str(op->name, " at ", to_string(site)); }

OpCall call_of(const GraphData& graph, const Node& node) {
  OpCall call{.op = node.op, .inputs = {}, .outputs = node.outputs, .attrs = &node.attrs, .site = node.site};
  call.inputs.reserve(node.inputs.size());
  for (TensorId id : node.inputs) call.inputs.push_back(graph.type(id));
  return call;
}

const OpDef& define_op(OpDef def) {
  internal_check(std::none_of(catalog().begin(), catalog().end(), [&](const OpDef& op) { return op.name == def.name; }),
                 "two primitives of one name");
  return catalog().emplace_back(std::move(def));
}

std::vector<const OpDef*> op_catalog() {
  std::vector<const OpDef*> ops;
  for (const OpDef& op : catalog()) ops.push_back(&op);
  std::sort(ops.begin(), ops.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return ops;
}

Tensors apply_all(const Graph& graph, const OpDef& op, const Tensors& inputs, Attrs attrs, Site site) {
  const std::shared_ptr<GraphData>& data = graph.data();
  check_graph(data, op, site);
  if (data->cause) site = *data->cause;
  check_inputs(data, op, inputs, site);
  Node node{.op = &op, .attrs = std::move(attrs), .site = site};
  OpCall call{.op = &op, .inputs = {}, .outputs = {}, .attrs = &node.attrs, .site = site};
  node.inputs.reserve(inputs.size());
  call.inputs.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    node.inputs.push_back(input.id());
    call.inputs.push_back(data->type(input.id()));
  }
  node.outputs = types_of(call, *data, inputs);
  for (const TensorType& output : node.outputs) {
    check_names(*data, call, output);
    check_size(call, output.shape);
  }
  node.full_name = data->scoped(op.name);
  node.ordinal = data->ordinals[node.full_name]++;
  node.name = node.ordinal == 0 ? node.full_name : str(node.full_name, "_", node.ordinal);
  node.phase = data->phase;
  node.loop = op.is_state ? -1 : data->loop;
  node.recompute = data->recompute;
  const NodeId id = data->nodes.end_id();
  const int outputs = static_cast<int>(node.outputs.size());
  data->nodes.push_back(std::move(node));
  Tensors results;
  for (int i = 0; i < outputs; ++i) results.emplace_back(data, TensorId{id, i});
  return results;
}

Tensors apply_all(const OpDef& op, const Tensors& inputs, Attrs attrs, Site site) {
  return apply_all(Graph(inputs.empty() ? nullptr : inputs[0].graph()), op, inputs, std::move(attrs), site);
}

Tensor apply(const OpDef& op, const Tensors& inputs, Site site) { return apply_all(op, inputs, {}, site)[0]; }
Tensor apply(const OpDef& op, const Tensors& inputs, Attrs attrs, Site site) {
  return apply_all(op, inputs, std::move(attrs), site)[0];
}

NodeId variable_of(const GraphData& graph, TensorId id) {
  while (graph.node(id).op->name == "cast") id = graph.node(id).inputs[0];
  return graph.node(id).op->name == "variable" ? id.node : NodeId();
}

}  // namespace weft
