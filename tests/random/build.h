// From a recipe to a graph with everything that a run of it needs.
#pragma once

#include <set>

#include "calls.h"
#include "language/graph_data.h"
#include "language/op_def.h"
#include "rng.h"
#include "support/sampling.h"

namespace weft::random_graphs {

// A scalar and its derivatives by some tensors; empty where gradients() gave none.
struct Differentiated {
  Tensor y;
  Tensors by, derivatives;
};

struct Built {
  Graph graph;
  Tensors values;  // one per step
  Tensors fetch;
  std::vector<Differentiated> differentiated;
  Updates update;
  Feeds feeds;
};

inline Tensors tensors_of(const Refs& refs, const Tensors& values) {
  Tensors tensors;
  for (const Ref& ref : refs) tensors.push_back(values[static_cast<std::size_t>(ref.step)]);
  return tensors;
}

inline Array feed_of(const Step& step) {
  const auto number = [&](std::size_t i) { return std::get<double>(step.args[i]); };
  const auto& shape = std::get<Shape>(step.args[1]);
  const auto dtype = std::get<DType>(step.args[2]);
  const auto stream = std::get<std::int64_t>(step.args[6]);
  if (step.function == "input_extreme") return extremes(shape, dtype, number(3), number(4), stream);
  return filled(shape, dtype, number(3), number(4), std::get<bool>(step.args[5]), stream);
}

inline Tensor changed(const Change& change, const Tensor& variable, const Tensor& value) {
  if (change.how == "assign_add") return assign_add(variable, value);
  return change.how == "assign_sub" ? assign_sub(variable, value) : assign(variable, value);
}

// The trained variables that the loss depends on. Optimizers refuse the others.
inline Refs reached(const Recipe& recipe, const Tensors& values) {
  const Tensors loss = tensors_of({recipe.loss}, values);
  const Tensors derivatives = gradients(loss, tensors_of(recipe.trained, values));
  Refs refs;
  for (std::size_t i = 0; i < derivatives.size(); ++i)
    if (derivatives[i]) refs.push_back(recipe.trained[i]);
  return refs;
}

// The sum of the squares of all derivatives: what second derivatives are taken of. Empty if there is none.
inline Tensor curvature(const Tensors& derivatives) {
  Tensors squares;
  for (const Tensor& d : derivatives)
    if (d) squares.push_back(reduce_sum(square(d)));
  return squares.empty() ? Tensor() : add_n(squares);
}

inline void differentiate(Built& built, const Tensor& y, const Tensors& by) {
  built.differentiated.push_back({y, by, gradients({y}, by)});
  for (const Tensor& d : built.differentiated.back().derivatives)
    if (d) built.fetch.push_back(d);
}

inline Built build(const Recipe& recipe) {
  Built built;
  for (const Step& step : recipe.steps) {
    built.values.push_back(call_of(step).build(built.graph, Args(step, built.values)));
    if (is_input(step)) built.feeds.emplace_back(built.values.back(), feed_of(step));
  }
  built.fetch = tensors_of(recipe.outputs, built.values);
  if (recipe.loss.step >= 0) {
    const Tensor loss = built.values[static_cast<std::size_t>(recipe.loss.step)];
    const Tensors by = tensors_of(recipe.by, built.values);
    differentiate(built, loss, by);
    const Tensor curved = recipe.second ? curvature(built.differentiated[0].derivatives) : Tensor();
    if (curved) differentiate(built, curved, by);
    built.update = optim::sgd(loss, tensors_of(reached(recipe, built.values), built.values), kRate);
  }
  for (const Change& change : recipe.changes) {
    const Tensors pair = tensors_of({change.variable, change.value}, built.values);
    built.update.push_back(changed(change, pair[0], pair[1]));
  }
  for (std::size_t i = 0; i < recipe.metrics.size(); ++i)
    scalar_metric("m" + std::to_string(i), tensors_of(recipe.metrics, built.values)[i]);
  return built;
}

// The graph without the nodes that nothing asked for stands on: what the partitioner looks at.
inline GraphData needed_part(const Built& built) {
  GraphData graph = *built.graph.data();
  std::set<NodeId> needed;
  std::vector<NodeId> open;
  for (const Tensors* wanted : {&built.fetch, &built.update})
    for (const Tensor& x : *wanted) open.push_back(x.id().node);
  for (TensorId id : graph.metrics) open.push_back(id.node);
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!needed.insert(n).second) continue;
    for (TensorId id : graph.nodes[n].inputs) open.push_back(id.node);
  }
  const OpDef* harmless = nullptr;
  for (const OpDef* op : op_catalog())
    if (op->name == "constant") harmless = op;
  for (const NodeId n : graph.nodes.ids()) {
    Node& node = graph.nodes[n];
    if (needed.contains(n)) continue;
    node.op = harmless;
    node.inputs.clear();
    node.outputs.clear();
  }
  return graph;
}

// Whether a layout should be taken, by the tests' own reading of the rules. Only for recipes without with_layout.
inline bool should_work(const Built& built, const Mesh& mesh, const std::string& layout) {
  const std::vector<std::string> dims = test::dims_of(*built.graph.data());
  const Layout parsed = Layout::parse(layout);
  for (const LayoutRule& rule : parsed.rules())
    if (std::find(dims.begin(), dims.end(), rule.dim) == dims.end()) return false;
  return test::is_legal(needed_part(built), mesh, layout);
}

// Whether a layout may be refused for what should_work does not see: tensors with rules of their own, loops' bodies.
inline bool has_own_layouts(const Recipe& recipe) {
  return std::any_of(recipe.steps.begin(), recipe.steps.end(),
                     [](const Step& s) { return s.function == "with_layout" || region_calls().contains(s.function); });
}

}  // namespace weft::random_graphs
