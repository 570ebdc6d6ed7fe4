// The judge: an evaluator of graphs that shares nothing with the engines. It walks the nodes in program order and computes
// every op from its meaning with plain loops over named indices: no partition, no passes, no kernels, no lowering. What it
// knows of an op are its attributes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "judge/value.h"
#include "language/graph_data.h"
#include "language/op_def.h"

namespace weft::judge {

// One use of an op: operands in, results out (made as zeros of their type).
struct Call {
  const Node& node;
  std::vector<const Value*> in;
  std::vector<Value>& out;
  const Arithmetic& arithmetic;
  std::uint64_t seed;
  std::uint32_t step;

  const Value& x(std::size_t i = 0) const { return *in[i]; }
  Value& y(std::size_t i = 0) const { return out[i]; }
  template <class T>
  const T& attr(const std::string& name) const {
    return node.attrs.get<T>(name);
  }
};
using Rule = std::function<void(const Call&)>;
using Rules = std::map<std::string, Rule>;

// The ops by family.
Rules pointwise_rules();
Rules source_rules();
Rules sum_rules();
Rules move_rules();
Rules index_rules();
Rules window_rules();
Rules attend_rules();

struct Options {
  Arithmetic arithmetic;
  std::uint64_t seed = 0;
};

class Judge {
 public:
  Judge(const Graph& graph, const Options& options);

  // One run: the values of the tensors, in their order. Assignments among them change the variables afterwards.
  // InternalError that names the op if there is one that the judge does not know.
  std::vector<ValuePtr> run(const std::map<std::string, Value>& inputs, const std::vector<TensorId>& wanted);

  std::map<std::string, Value> variables;  // by name; every variable of the graph, at first as it is initialized
  std::uint32_t step = 0;

  // What stop_gradient() gave is written down, or taken from what was: the constants of a finite difference.
  std::vector<ValuePtr>* recorded = nullptr;
  const std::vector<ValuePtr>* replayed = nullptr;

 private:
  using Env = std::map<TensorId, ValuePtr>;

  void evaluate(const Node& node, NodeId n, Env& env);
  std::vector<ValuePtr> results_of(const Node& node, const Env& env);
  std::vector<ValuePtr> looped(const Node& node, const std::vector<ValuePtr>& in);
  ValuePtr stopped(const ValuePtr& x);

  const Graph graph_;
  const GraphData& data_;
  Options options_;
  const std::map<std::string, Value>* inputs_ = nullptr;
  std::size_t next_replayed_ = 0;
};

// Whether `y` depends on `x` through ops that have a derivative; stop_gradient, whole numbers and jumps cut the path.
// `by_hand`: custom_gradient cuts it too, since its derivative may be anything.
bool depends(const Graph& graph, TensorId y, TensorId x, bool by_hand);

}  // namespace weft::judge
