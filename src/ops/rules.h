// The rules that declarations of ops use: shapes, shardings, lowerings, flops; and Lowering, the input of a lowering.
#pragma once

#include <string>
#include <vector>

#include "language/op_def.h"
#include "layout/resolve.h"
#include "layout/rule.h"
#include "program/builder.h"
#include "weft/ops.h"

namespace weft {

// The body of a loop, to be lowered to a program: its inputs in order, each for a tensor of the graph or (an empty id)
// for the lowering only; the tensors it computes; and a function that appends the outputs and what they need.
struct BodyRequest {
  struct Input {
    TensorId tensor;
    ValueType type;
  };
  std::vector<Input> inputs;
  std::vector<TensorId> results;
  std::function<void(const std::vector<ValueId>& inputs, const std::vector<ValueId>& results)> finish;
};

// The partitioner's services for lowerings: resharding a value and lowering a loop's body. While a body is being
// lowered, Lowering::builder builds the body.
class LoweringContext {
 public:
  virtual ~LoweringContext() = default;
  virtual Program body(const BodyRequest& request) = 0;
  virtual ValueId reshard(ValueId x, const Sharding& want) = 0;
  // The bytes per processor that this resharding would send.
  virtual std::int64_t bytes(const TensorType& global, const Sharding& have, const Sharding& want) const = 0;
};

// One op being lowered. `inputs` are local values with the sharding of `axes`. A result may have the sharding of out(i)
// or any other: the partitioner reshards it to `wanted`.
class Lowering {
 public:
  Lowering(Builder& builder, const OpCall& call, const ShardingRule& rule, std::vector<ValueId> inputs, DimAxes axes,
           std::vector<Sharding> wanted, std::uint64_t key, LoweringContext& context)
      : builder(builder),
        call(call),
        rule(rule),
        inputs(std::move(inputs)),
        axes(std::move(axes)),
        wanted(std::move(wanted)),
        key(key),
        context(context) {}

  Builder& builder;
  const OpCall& call;
  const ShardingRule& rule;
  std::vector<ValueId> inputs;
  DimAxes axes;                        // dim -> axes in this op
  const std::vector<Sharding> wanted;  // of each output
  std::uint64_t key;                   // of this op's random numbers
  LoweringContext& context;

  const Axes& axes_of(const std::string& dim) const;
  // The local type of a tensor of the op under `axes`, with nothing pending.
  ValueType local(const TensorType& global) const;
  // The local type of an output; pending over the axes of the dims that the rule reduces.
  ValueType out(std::size_t i = 0) const;
};

namespace shape_rule {
// One output like the i-th input.
std::function<std::vector<TensorType>(const OpCall&)> same_as(std::size_t i);
inline std::vector<TensorType> stated_type(const OpCall& call) { return {call.attr<TensorType>("type")}; }
// UserError unless input i is of a float / of the given dtype.
void expect_float(const OpCall& call, std::size_t i = 0);
void expect_dtype(const OpCall& call, std::size_t i, DType dtype);
void expect_same_dtypes(const OpCall& call);
// UserError if x has no such dim, by name and size.
void expect_dim(const OpCall& call, const Shape& x, const Dim& dim);
// The union of shapes for a broadcast: the shape that contains the dims of both in order, else x's dims and then y's
// new dims. UserError if a name has two sizes.
Shape broadcast_shape(const OpCall& call, const Shape& x, const Shape& y);
}  // namespace shape_rule

namespace sharding_rule {
std::function<ShardingRule(const OpCall&)> pointwise();  // every dim passes
std::function<ShardingRule(const OpCall&)> relayout();   // the results' layout is independent of the operands'
std::function<ShardingRule(const OpCall&)> talks_along(
    std::string attribute);  // the lowering moves data along the dim of that attribute
}  // namespace sharding_rule

namespace lower_rule {
// One pointwise function of kernels/pointwise-inl.h over all inputs.
std::function<std::vector<ValueId>(Lowering&)> map(std::string function);
}  // namespace lower_rule

namespace flops_rule {
std::function<double(const OpCall&)> per_element(double flops);
std::function<double(const OpCall&)> none();
}  // namespace flops_rule

}  // namespace weft
