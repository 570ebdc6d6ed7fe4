// OpDef: the complete declaration of a primitive, and functions to register and apply it.
//
// A primitive is one file of src/ops with one define_op({…}). The types of the sharding rule and the lowering are
// defined in lower layers (layout/rule.h, ops/rules.h); this header only declares them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/index.h"
#include "language/graph_data.h"

namespace weft {

struct ShardingRule;
struct Value;  // of a program
class Lowering;

// One use of an op: the input of its rules. Shapes are global.
struct OpCall {
  const OpDef* op = nullptr;
  std::vector<TensorType> inputs;
  std::vector<TensorType> outputs;  // empty while the shape rule runs
  const Attrs* attrs = nullptr;
  Site site = Site::current();

  template <class T>
  const T& attr(const std::string& name) const {
    return attrs->get<T>(name);
  }
  const Shape& in(std::size_t i = 0) const { return inputs[i].shape; }
  const Shape& out(std::size_t i = 0) const { return outputs[i].shape; }
  // "einsum at model.cc:12", for errors.
  Place where() const;
};

// UserError if a tensor of the shape would have too many elements.
void check_size(const OpCall& call, const Shape& shape);

// The call that corresponds to a node of a graph.
OpCall call_of(const GraphData& graph, const Node& node);

// The input of a gradient function: the op's inputs and outputs and the gradients of its outputs.
class Grad {
 public:
  Grad(Tensors inputs, Tensors outputs, Tensors dys, std::vector<bool> used, const Attrs& attrs, Site site)
      : inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        dys_(std::move(dys)),
        used_(std::move(used)),
        attrs_(attrs),
        site_(site) {}
  const Tensor& x(std::size_t i = 0) const { return inputs_[i]; }
  const Tensor& y(std::size_t i = 0) const { return outputs_[i]; }
  const Tensor& dy(std::size_t i = 0) const { return dys_[i]; }  // zeros if that output is unused
  bool is_used(std::size_t i) const { return used_[i]; }         // whether a y depends on output i
  const Tensors& xs() const { return inputs_; }
  const Tensors& ys() const { return outputs_; }
  const Tensors& dys() const { return dys_; }
  template <class T>
  const T& attr(const std::string& name) const {
    return attrs_.get<T>(name);
  }
  Site site() const { return site_; }

 private:
  Tensors inputs_, outputs_, dys_;
  std::vector<bool> used_;
  const Attrs& attrs_;
  Site site_;
};

// Values of a sample's input: uniform in [low, high), integers if `whole`. Drawn from a fixed seed.
struct Fill {
  double low = -1, high = 1;
  bool whole = false;
};
inline Fill uniform(double low, double high) { return {low, high, false}; }
inline Fill whole(double low, double high) { return {low, high, true}; }

struct SampleInput {
  Shape shape;
  Fill fill;
  DType dtype = DType::kF32;
};

inline SampleInput uniform_input(Shape shape) { return {std::move(shape), uniform(-1, 1), DType::kF32}; }

// One conformance case: inputs, and a function that applies the op to them.
struct Sample {
  std::vector<SampleInput> inputs;
  std::function<Tensors(Graph&, const Tensors&)> build;  // if empty: the op itself with no attributes
};
inline Sample sample(Shape shape, Fill fill) { return {{{std::move(shape), fill, DType::kF32}}, {}}; }

struct OpDef {
  std::string name;
  std::string doc;  // one line for docs/ops.md
  std::function<std::vector<TensorType>(const OpCall&)> shape;
  std::function<ShardingRule(const OpCall&)> sharding;
  std::function<Tensors(const Grad&)> gradient = {};  // one per input, empty if there is none
  std::string no_gradient = {};                       // the reason, if there is no gradient
  std::function<std::vector<Id<Value>>(Lowering&)> lower;
  std::function<double(const OpCall&)> flops;  // nominal, on global shapes
  std::vector<Sample> samples;
  bool is_state = false;  // inputs and variables: outside of every loop, even if made inside
};

// Adds a primitive to the catalog; the reference stays valid.
const OpDef& define_op(OpDef def);
// All primitives, by name.
std::vector<const OpDef*> op_catalog();

// Appends an op to the graph of its first input (or the given graph); checks graph and types.
Tensors apply_all(const OpDef& op, const Tensors& inputs, Attrs attrs, Site site);
Tensors apply_all(const Graph& graph, const OpDef& op, const Tensors& inputs, Attrs attrs, Site site);
Tensor apply(const OpDef& op, const Tensors& inputs, Site site);
Tensor apply(const OpDef& op, const Tensors& inputs, Attrs attrs, Site site);

// The variable that a tensor is, also behind casts; -1 if the tensor is not a variable.
NodeId variable_of(const GraphData& graph, TensorId id);

}  // namespace weft
