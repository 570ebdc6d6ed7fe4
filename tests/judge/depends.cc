// Which tensors a tensor depends on through ops that have a derivative.
#include <map>
#include <set>

#include "judge/judge.h"
#include "language/region.h"
#include "ops/loop_body.h"

namespace weft::judge {

namespace {

using Ids = std::set<TensorId>;

class Dependence {
 public:
  Dependence(const GraphData& graph, bool by_hand) : graph_(graph), by_hand_(by_hand) {}

  // The tensors of `from` that y depends on, looking no further than into the region (no region: everywhere).
  Ids of(TensorId y, const Ids& from, const Region* region) {
    Ids found, seen;
    std::vector<TensorId> open{y};
    while (!open.empty()) {
      const TensorId id = open.back();
      open.pop_back();
      if (!is_float(graph_.type(id).dtype) || !seen.insert(id).second) continue;
      if (from.contains(id)) found.insert(id);
      if (region && !is_in(graph_, *region, id.node)) continue;
      for (TensorId input : inputs_of(id)) open.push_back(input);
    }
    return found;
  }

 private:
  // The operands that output `id` has a derivative by.
  std::vector<TensorId> inputs_of(TensorId id) {
    const Node& node = graph_.node(id);
    const std::string& op = node.op->name;
    static const std::set<std::string> kJumps = {"stop_gradient", "sign", "floor", "floordiv", "assign"};
    if (kJumps.contains(op)) return {};
    if (op == "loop") return loop_inputs(node, static_cast<std::size_t>(id.output));
    const auto operand = [&](std::size_t i) { return std::vector<TensorId>{node.inputs[i]}; };
    if (op == "custom_gradient" && by_hand_) return {};
    // The first operands are what is passed on; the others say what derivatives go to.
    if (op == "custom_gradient" || op == "recompute" || op == "reversible")
      return operand(static_cast<std::size_t>(id.output));
    if (op == "pooling" && node.inputs.size() > 1)  // winners: linear in the third operand, jumps in the others
      return node.inputs.size() == 3 ? operand(2) : std::vector<TensorId>{};
    if (op == "attend" && id.output > 0) return {};
    return node.inputs;
  }

  // What a result of the loop depends on: the body's dependences, followed from trip to trip.
  std::vector<TensorId> loop_inputs(const Node& node, std::size_t output) {
    const LoopBody& body = *node.attrs.get<std::shared_ptr<LoopBody>>("body");
    Ids outside(body.given.begin(), body.given.end());
    outside.insert(body.captures.begin(), body.captures.end());
    const auto of_result = [&](std::size_t r) { return of(body.results[r], outside, &body.region); };
    Ids all;
    if (output >= body.first_start()) all = {body.given[output - body.first_start()]};
    else all = of_result(output);
    for (std::int64_t trip = 1; trip < body.trips; ++trip) {
      Ids before = all;
      for (std::size_t k = 0; k < body.carried; ++k)
        if (all.contains(body.given[k])) before.merge(of_result(k));
      const bool same = before == all;
      // A carried result depends on the first values through all trips only, the others on every trip's.
      all = before;
      if (same) break;
    }
    std::vector<TensorId> inputs;
    for (std::size_t k = 0; k < body.carried; ++k)
      if (all.contains(body.given[k])) inputs.push_back(node.inputs[k]);
    for (std::size_t c = 0; c < body.captures.size(); ++c)
      if (all.contains(body.captures[c])) inputs.push_back(node.inputs[body.carried + c]);
    return inputs;
  }

  const GraphData& graph_;
  bool by_hand_;
};

}  // namespace

bool depends(const Graph& graph, TensorId y, TensorId x, bool by_hand) {
  return !Dependence(*graph.data(), by_hand).of(y, {x}, nullptr).empty();
}

}  // namespace weft::judge
