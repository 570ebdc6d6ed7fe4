#include "plan/split_rules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/str.h"
#include "layout/rule.h"
#include "ops/loop_body.h"

namespace weft {

namespace {

bool is_reserved(const std::string& dim) { return dim.starts_with('#'); }

struct Facts {
  std::map<std::string, std::int64_t> divisors;
  std::set<std::string> whole;
  std::vector<std::set<std::string>> together;  // dims of one tensor, or of one op
};

// Every value has the sharding of the layout, unless with_layout() says otherwise. Then only tensors whose sharding is
// always the layout's say which dims meet.
Facts facts_of(const GraphData& graph, const std::vector<NodeId>& nodes) {
  const bool follows_layout =
      std::ranges::none_of(nodes, [&](NodeId n) { return graph.nodes[n].op->name == "with_layout"; });
  Facts facts;
  for (const NodeId n : nodes) {
    const Node& node = graph.nodes[n];
    const OpCall call = call_of(graph, node);
    const ShardingRule rule = node.op->sharding(call);
    std::set<std::string> of_op;
    const auto add = [&](const TensorType& type, std::set<std::string>& set) {
      for (const Dim& dim : type.shape) {
        if (is_reserved(dim.name)) continue;
        set.insert(dim.name);
        std::int64_t& divisor = facts.divisors[dim.name];
        divisor = std::gcd(divisor, dim.size);
      }
    };
    for (const TensorType& type : call.inputs) add(type, of_op);
    for (const TensorType& type : call.outputs) {
      std::set<std::string> of_tensor;
      add(type, of_tensor);
      if (follows_layout || node.op->is_state) facts.together.push_back(of_tensor);
      of_op.insert(of_tensor.begin(), of_tensor.end());
    }
    if (!follows_layout) continue;
    if (!rule.reshards_output) facts.together.push_back(of_op);
    for (const auto& [dim, how] : rule.dims)
      if (how.kind == DimRule::Kind::kWhole) facts.whole.insert(dim);
  }
  return facts;
}

}  // namespace

std::vector<NodeId> nodes_for(const GraphData& graph, const std::vector<TensorId>& wanted) {
  std::vector<TensorId> open = wanted;
  std::set<NodeId> needed;
  while (!open.empty()) {
    const NodeId n = open.back().node;
    open.pop_back();
    if (!needed.insert(n).second) continue;
    const Node& node = graph.nodes[n];
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    if (node.op->name != "loop") continue;
    const auto& body = *node.attrs.get<std::shared_ptr<LoopBody>>("body");
    open.insert(open.end(), body.results.begin(), body.results.end());
  }
  return {needed.begin(), needed.end()};
}

SplitRules::SplitRules(const GraphData& graph, const std::vector<TensorId>& wanted) {
  const Facts facts = facts_of(graph, nodes_for(graph, wanted));
  for (const auto& [dim, divisor] : facts.divisors) {
    all_dims_.push_back(dim);
    if (divisor < 2 || facts.whole.contains(dim) || dims_.size() == kMostDims) continue;
    dims_.push_back(dim);
    divisors_.push_back(divisor);
  }
  meets_.resize(dims_.size());
  for (const std::set<std::string>& together : facts.together) {
    DimSet set = 0;
    for (const std::string& dim : together)
      if (const int i = find(dim); i >= 0) set |= DimSet{1} << i;
    for (std::size_t i = 0; i < dims_.size(); ++i)
      if (set >> i & 1) meets_[i] |= set & ~(DimSet{1} << i);
  }
}

int SplitRules::find(const std::string& dim) const {
  const auto found = std::ranges::lower_bound(dims_, dim);
  return found == dims_.end() || *found != dim ? -1 : static_cast<int>(found - dims_.begin());
}

std::vector<DimSet> SplitRules::roles(int size, DimSet allowed) const {
  std::vector<DimSet> roles = {0};
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    if (!(allowed >> i & 1) || divisors_[i] % size != 0) continue;
    const std::size_t before = roles.size();
    for (std::size_t k = 0; k < before; ++k)
      if (!(roles[k] & meets_[i])) roles.push_back(roles[k] | DimSet{1} << i);
  }
  return roles;
}

std::vector<std::string> SplitRules::names(DimSet set) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < dims_.size(); ++i)
    if (set >> i & 1) names.push_back(dims_[i]);
  return names;
}

}  // namespace weft
