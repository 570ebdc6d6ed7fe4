#include "language/region.h"

#include <algorithm>
#include <set>

namespace weft {

namespace {

// A cast of a variable: gradients treat it like the variable.
bool casts_variable(const GraphData& graph, NodeId n) {
  const Node& node = graph.nodes[n];
  return node.op->name == "cast" && graph.nodes[node.inputs[0].node].op->name == "variable";
}

std::set<NodeId> standing_on(const GraphData& graph, const Region& region, const std::vector<TensorId>& results) {
  std::vector<NodeId> open;
  for (TensorId id : results) open.push_back(id.node);
  std::set<NodeId> needed;
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!is_in(graph, region, n) || !needed.insert(n).second) continue;
    for (TensorId input : graph.nodes[n].inputs) open.push_back(input.node);
  }
  return needed;
}

}  // namespace

bool is_in(const GraphData& graph, const Region& region, NodeId node) {
  return node >= region.first && node < region.last && graph.nodes[node].loop == region.loop &&
         !graph.nodes[node].op->is_state && !(region.loop < 0 && casts_variable(graph, node));
}

std::vector<TensorId> captures_of(const GraphData& graph, const Region& region, const std::vector<TensorId>& results) {
  std::vector<TensorId> captures;
  std::set<TensorId> seen;
  const auto add = [&](TensorId id) {
    if (!is_in(graph, region, id.node) && seen.insert(id).second) captures.push_back(id);
  };
  for (const NodeId n : ids(region.first, region.last))
    if (is_in(graph, region, n))
      for (TensorId input : graph.nodes[n].inputs) add(input);
  for (TensorId id : results) add(id);
  return captures;
}

Tensors clone_region(const std::shared_ptr<GraphData>& graph, const Region& region,
                     const std::map<TensorId, Tensor>& by, const std::vector<TensorId>& results) {
  std::map<NodeId, NodeId> again;
  const auto replaced = [&](TensorId id) -> TensorId {
    if (const auto found = by.find(id); found != by.end()) return found->second.id();
    const auto found = again.find(id.node);
    return found == again.end() ? id : TensorId{found->second, id.output};
  };
  std::vector<TensorId> wanted;  // results that are not given
  for (TensorId id : results)
    if (!by.contains(id)) wanted.push_back(id);
  const int number = ++graph->recomputes;
  for (const NodeId n : standing_on(*graph, region, wanted)) {
    Node copy = graph->nodes[n];
    for (TensorId& input : copy.inputs) input = replaced(input);
    copy.phase = graph->phase == Phase::kUpdate ? Phase::kUpdate : Phase::kRecompute;
    copy.loop = graph->loop;
    copy.recompute = number;
    again[n] = graph->nodes.add(std::move(copy));
  }
  Tensors tensors;
  for (TensorId id : results) tensors.emplace_back(graph, replaced(id));
  return tensors;
}

}  // namespace weft
