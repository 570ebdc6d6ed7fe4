#include "judge/judge.h"

#include <algorithm>

#include "base/str.h"
#include "judge/sources.h"
#include "language/region.h"
#include "ops/loop_body.h"
#include "weft/error.h"

namespace weft::judge {

namespace {

const Rules& all_rules() {
  static const Rules rules = [] {
    Rules all;
    for (const auto& family :
         {pointwise_rules, source_rules, sum_rules, move_rules, index_rules, window_rules, attend_rules})
      all.merge(family());
    return all;
  }();
  return rules;
}

// The nodes that `wanted` stand on, in program order, among those that `is_inside` accepts.
template <class Inside>
std::set<NodeId> needed_for(const GraphData& graph, const std::vector<TensorId>& wanted, const Inside& is_inside) {
  std::set<NodeId> needed;
  std::vector<NodeId> open;
  for (TensorId id : wanted) open.push_back(id.node);
  while (!open.empty()) {
    const NodeId n = open.back();
    open.pop_back();
    if (!is_inside(n) || !needed.insert(n).second) continue;
    for (TensorId id : graph.nodes[n].inputs) open.push_back(id.node);
  }
  return needed;
}

// x + y of one dtype, as the sum over the trips of a loop goes.
Value added(const Value& x, const Value& y, const Arithmetic& arithmetic) {
  Value sum(x.shape, x.dtype);
  Writer out(arithmetic, sum);
  Walk(sum.shape, {&sum.shape, &x.shape, &y.shape}).each([&](const std::int64_t* p) {
    const auto k = static_cast<std::size_t>(p[0]), i = static_cast<std::size_t>(p[1]),
               j = static_cast<std::size_t>(p[2]);
    if (sum.is_real()) out.rounded(k, x.f[i] + y.f[j], x.error[i] + y.error[j]);
    else
      out.whole(k, static_cast<std::int64_t>(static_cast<std::uint64_t>(x.i[i]) + static_cast<std::uint64_t>(y.i[j])),
                x.known(i) && y.known(j));
  });
  return sum;
}

// Writes x as row `trip` of a value whose first dim counts trips.
void keep(Value& all, const Value& x, std::int64_t trip, const Arithmetic& arithmetic) {
  Writer out(arithmetic, all);
  const std::int64_t row = trip * static_cast<std::int64_t>(x.size());
  Shape rest = all.shape.minus({all.shape[0]});
  Walk(rest, {&rest, &x.shape}).each([&](const std::int64_t* p) {
    out.moved(static_cast<std::size_t>(row + p[0]), x, static_cast<std::size_t>(p[1]));
  });
}

}  // namespace

Judge::Judge(const Graph& graph, const Options& options) : graph_(graph), data_(*graph_.data()), options_(options) {
  for (const auto& [name, n] : data_.variable_nodes)
    variables[name] = initial(data_.nodes[n], options.arithmetic, options.seed);
}

ValuePtr Judge::stopped(const ValuePtr& x) {
  if (recorded) recorded->push_back(x);
  return replayed ? replayed->at(next_replayed_++) : x;
}

std::vector<ValuePtr> Judge::looped(const Node& node, const std::vector<ValuePtr>& in) {
  const LoopBody& body = *node.attrs.get<std::shared_ptr<LoopBody>>("body");
  const auto nodes = needed_for(data_, body.results, [&](NodeId n) { return is_in(data_, body.region, n); });
  std::vector<Value> outputs;
  for (const TensorType& type : node.outputs) outputs.emplace_back(type.shape, type.dtype);
  std::vector<ValuePtr> carried(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(body.carried));
  bool certain = true;
  for (std::int64_t trip = 0; trip < body.trips; ++trip) {
    Env env;
    Value index({}, DType::kI64);
    index.i[0] = trip;
    env[body.index] = std::make_shared<const Value>(index);
    for (std::size_t k = 0; k < body.carried; ++k) env[body.given[k]] = carried[k];
    for (std::size_t c = 0; c < body.captures.size(); ++c) env[body.captures[c]] = in[body.carried + c];
    for (const NodeId n : nodes)
      if (!env.contains({n, 0})) evaluate(data_.nodes[n], n, env);
    const auto result = [&](std::size_t k) { return env.at(body.results[k]); };
    for (std::size_t k = 0; k < body.starts(); ++k)
      keep(outputs[body.first_start() + k], *carried[k], trip, options_.arithmetic);
    for (std::size_t k = 0; k < body.sums; ++k) {
      Value& sum = outputs[body.carried + k];
      sum = added(sum, *result(body.carried + k), options_.arithmetic);
    }
    for (std::size_t k = 0; k < body.kept; ++k)
      keep(outputs[body.first_kept() + k], *result(body.first_kept() + k), trip, options_.arithmetic);
    for (std::size_t k = 0; k < body.carried; ++k) carried[k] = result(k);
    if (!body.stops) continue;
    const Value& stop = *result(body.results.size() - 1);
    certain = certain && stop.known(0);
    if (stop.i[0] != 0) break;
  }
  for (std::size_t k = 0; k < body.carried; ++k) outputs[k] = *carried[k];
  std::vector<ValuePtr> all;
  for (Value& value : outputs) {
    if (!certain) std::fill(value.error.begin(), value.error.end(), kUnknown);
    all.push_back(std::make_shared<const Value>(std::move(value)));
  }
  return all;
}

std::vector<ValuePtr> Judge::results_of(const Node& node, const Env& env) {
  const std::string& op = node.op->name;
  std::vector<ValuePtr> in;
  for (TensorId id : node.inputs) in.push_back(env.at(id));
  if (op == "input") return {std::make_shared<const Value>(inputs_->at(node.attrs.get<std::string>("name")))};
  if (op == "variable") return {std::make_shared<const Value>(variables.at(node.attrs.get<std::string>("name")))};
  if (op == "stop_gradient") return {stopped(in[0])};
  if (op == "loop") return looped(node, in);
  const auto rule = all_rules().find(op);
  if (rule == all_rules().end()) throw InternalError(str("the judge does not know the op '", op, "'"));
  std::vector<Value> outputs;
  for (const TensorType& type : node.outputs) outputs.emplace_back(type.shape, type.dtype);
  std::vector<const Value*> operands;
  for (const ValuePtr& x : in) operands.push_back(x.get());
  rule->second(Call{node, operands, outputs, options_.arithmetic, options_.seed, step});
  std::vector<ValuePtr> all;
  for (Value& value : outputs) all.push_back(std::make_shared<const Value>(std::move(value)));
  return all;
}

void Judge::evaluate(const Node& node, NodeId n, Env& env) {
  const std::vector<ValuePtr> results = results_of(node, env);
  for (std::size_t i = 0; i < results.size(); ++i) env[{n, static_cast<int>(i)}] = results[i];
}

std::vector<ValuePtr> Judge::run(const std::map<std::string, Value>& inputs, const std::vector<TensorId>& wanted) {
  inputs_ = &inputs;
  next_replayed_ = 0;
  Env env;
  std::map<std::string, Value> changed;
  for (const NodeId n : needed_for(data_, wanted, [](NodeId) { return true; })) {
    const Node& node = data_.nodes[n];
    evaluate(node, n, env);
    if (node.op->name == "assign") changed[node.attrs.get<std::string>("name")] = *env.at({n, 0});
  }
  for (auto& [name, value] : changed) variables[name] = std::move(value);
  ++step;
  std::vector<ValuePtr> values;
  for (TensorId id : wanted) values.push_back(env.at(id));
  return values;
}

}  // namespace weft::judge
