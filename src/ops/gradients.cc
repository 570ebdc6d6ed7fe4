// Reverse-mode differentiation, graph to graph.
#include <algorithm>
#include <map>
#include <set>

#include "base/str.h"
#include "language/region.h"
#include "weft/ops.h"

namespace weft {

namespace {

// The nodes, from `first` on, on a path from an x to a y: only these need gradients.
std::set<NodeId> nodes_between(const GraphData& graph, NodeId first, const Tensors& xs, const Tensors& ys) {
  std::set<TensorId> targets;
  for (const Tensor& x : xs) targets.insert(x.id());
  std::set<NodeId> after;
  for (const NodeId n : ids(first, graph.nodes.end_id())) {
    for (TensorId input : graph.nodes[n].inputs)
      if (targets.contains(input) || after.contains(input.node)) after.insert(n);
  }
  std::set<NodeId> between;
  std::vector<NodeId> open;
  for (const Tensor& y : ys) open.push_back(y.id().node);
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!after.contains(n) || !between.insert(n).second) continue;
    for (TensorId input : graph.nodes[n].inputs) open.push_back(input.node);
  }
  return between;
}

class Reverse {
 public:
  Reverse(std::shared_ptr<GraphData> graph, Site site) : graph_(std::move(graph)), site_(site) {}

  void add(TensorId id, const Tensor& dy) {
    const Tensor x(graph_, id);
    internal_check(same_dims(dy.shape(), x.shape()), "a gradient whose shape is not that of its tensor");
    const Tensor ordered = dy.shape() == x.shape() ? dy : transpose(dy, x.shape(), site_);
    Tensor& sum = sums_[id];
    sum = sum ? weft::add(sum, ordered, site_) : ordered;
  }

  void visit(NodeId n) {
    const Node& node = graph_->nodes[n];
    Tensors dys, outputs, inputs;
    std::vector<bool> used;
    for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i) {
      outputs.emplace_back(graph_, TensorId{n, i});
      const auto found = sums_.find({n, i});
      dys.push_back(found == sums_.end() ? Tensor() : found->second);
      used.push_back(found != sums_.end());
    }
    if (std::find(used.begin(), used.end(), true) == used.end()) return;
    const CauseGuard cause(*graph_, node.site);
    if (!node.op->gradient) {
      if (node.op->no_gradient.empty()) return;
      throw UserError({.code = "gradients.op-without-gradient",
                       .what = str("the gradient goes through '", node.name, "', but ", node.op->name,
                                   " has no gradient: ", node.op->no_gradient),
                       .where = str(node.op->name, " at ", to_string(node.site)),
                       .fix = "put stop_gradient() before it, or define its gradient with custom_gradient()"});
    }
    for (std::size_t i = 0; i < dys.size(); ++i)
      if (!dys[i] && is_float(node.outputs[i].dtype)) dys[i] = zeros_like(outputs[i], site_);
    for (TensorId id : node.inputs) inputs.emplace_back(graph_, id);
    const std::vector<TensorId> ids = node.inputs;
    const Tensors dxs = node.op->gradient(Grad(inputs, outputs, dys, used, node.attrs, node.site));
    for (std::size_t i = 0; i < dxs.size(); ++i)
      if (dxs[i]) add(ids[i], dxs[i]);
  }

  Tensor of(TensorId id) const {
    const auto found = sums_.find(id);
    return found == sums_.end() ? Tensor() : found->second;
  }

 private:
  std::shared_ptr<GraphData> graph_;
  Site site_;
  std::map<TensorId, Tensor> sums_;
};

// All tensors must be of one graph and not empty: ids of another graph would silently mean other tensors.
void check_graph(const Tensors& tensors, const char* kind, const std::shared_ptr<GraphData>& graph, Site site) {
  for (const Tensor& x : tensors)
    if (!x || x.graph() != graph)
      throw UserError({.code = "gradients.foreign-tensor",
                       .what = str("gradients() was given ", kind, " that is ",
                                   x ? str("of another graph: '", x.name(), "'") : "empty"),
                       .where = site,
                       .fix = "give tensors of one graph; leave out empty results of gradients()"});
}

void check_arguments(const Tensors& ys, const Tensors& xs, const Tensors& dys, Site site) {
  if (ys.empty())
    throw UserError(
        {.code = "gradients.no-y", .what = "gradients() was given no y", .where = site, .fix = "give at least one y"});
  check_graph(ys, "a y", ys[0].graph(), site);
  check_graph(xs, "an x", ys[0].graph(), site);
  check_graph(dys, "a dy", ys[0].graph(), site);
  if (!dys.empty() && dys.size() != ys.size())
    throw UserError({.code = "gradients.dy-count-mismatch",
                     .what = str("gradients() was given ", ys.size(), " ys and ", dys.size(), " dys"),
                     .where = site,
                     .fix = "give one dy for each y, or no dys at all: they default to ones"});
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (!is_float(ys[i].dtype()))
      throw UserError({.code = "gradients.y-not-float",
                       .what = str("gradients() of '", ys[i].name(), "', which is ", ys[i].dtype()),
                       .where = site,
                       .fix = "cast it to a floating-point dtype first: only these have gradients"});
    if (!dys.empty() && !same_dims(dys[i].shape(), ys[i].shape()))
      throw UserError({.code = "gradients.dy-shape-mismatch",
                       .what = str("dy ", dys[i].shape(), " does not fit y '", ys[i].name(), "' ", ys[i].shape()),
                       .where = site,
                       .fix = "give a dy with the dims of its y"});
  }
}

}  // namespace

Tensors gradients(const Tensors& ys, const Tensors& xs, const Tensors& dys, Site site) {
  check_arguments(ys, xs, dys, site);
  return gradients_from(NodeId(0), ys, xs, dys, site);
}

ValueAndGradients value_and_grad(const std::function<Tensor(const Tensors& xs)>& function, const Tensors& xs,
                                 Site site) {
  ValueAndGradients result{function(xs), {}};
  if (!result.value || result.value.shape().rank() > 0)
    throw UserError({.code = "value-and-grad.result-not-scalar",
                     .what = str("value_and_grad() was given a function whose result is ",
                                 result.value ? str("'", result.value.name(), "' ", result.value.shape()) : "empty"),
                     .where = site,
                     .fix = "return a scalar: reduce_sum() or mean() of the tensor"});
  result.gradients = gradients({result.value}, xs, {}, site);
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (!result.gradients[i])
      throw UserError({.code = "value-and-grad.independent-tensor",
                       .what = str("value_and_grad() of a function that does not depend on '", xs[i].name(), "'"),
                       .where = site,
                       .fix = "leave out this tensor, or use it in the function"});
  return result;
}

Tensors gradients_from(NodeId first, const Tensors& ys, const Tensors& xs, const Tensors& dys, Site site) {
  const std::shared_ptr<GraphData> graph = ys[0].graph();
  const PhaseGuard phase(*graph, graph->phase == Phase::kUpdate ? Phase::kUpdate : Phase::kBackward);
  const OwnDimsGuard own(graph);
  const std::set<NodeId> between = nodes_between(*graph, first, xs, ys);
  Reverse reverse(graph, site);
  for (std::size_t i = 0; i < ys.size(); ++i) reverse.add(ys[i].id(), dys.empty() ? ones_like(ys[i], site) : dys[i]);
  for (auto n = between.rbegin(); n != between.rend(); ++n) reverse.visit(*n);
  Tensors results;
  for (const Tensor& x : xs) results.push_back(reverse.of(x.id()));
  return results;
}

}  // namespace weft
