#include "ops/rules.h"

#include <algorithm>

#include "base/str.h"

namespace weft {

const Axes& Lowering::axes_of(const std::string& dim) const {
  static const Axes kNone;
  const auto found = axes.find(dim);
  return found == axes.end() ? kNone : found->second;
}

ValueType Lowering::local(const TensorType& global) const {
  Sharding sharding = unsplit(global.shape);
  for (std::size_t i = 0; i < global.shape.rank(); ++i) sharding.dims[i] = axes_of(global.shape[i].name);
  Shape shape = local_shape(global.shape, sharding, builder.mesh());
  return {global.dtype, std::move(shape), std::move(sharding)};
}

ValueType Lowering::out(std::size_t i) const {
  ValueType type = local(call.outputs[i]);
  for (const auto& [dim, how] : rule.dims) {
    if (how.kind != DimRule::Kind::kReduce) continue;
    const Axes& pending = axes_of(dim);
    if (pending.empty()) continue;
    type.sharding.partial.insert(type.sharding.partial.end(), pending.begin(), pending.end());
    type.sharding.pending = how.how;
  }
  std::sort(type.sharding.partial.begin(), type.sharding.partial.end());
  return type;
}

namespace shape_rule {

std::function<std::vector<TensorType>(const OpCall&)> same_as(std::size_t i) {
  return [i](const OpCall& call) { return std::vector<TensorType>{call.inputs[i]}; };
}

void expect_float(const OpCall& call, std::size_t i) {
  if (!is_float(call.inputs[i].dtype))
    throw UserError(
        {.code = "op.not-float",
         .what = str(call.op->name, " needs a floating-point tensor, not ", call.inputs[i].dtype, " ", call.in(i)),
         .where = call.where(),
         .fix = "cast() it to f32 first"});
}

void expect_dtype(const OpCall& call, std::size_t i, DType dtype) {
  if (call.inputs[i].dtype != dtype)
    throw UserError({.code = "op.wrong-dtype",
                     .what = str(call.op->name, " needs ", dtype, " for operand ", i + 1, ", not ",
                                 call.inputs[i].dtype, " ", call.in(i)),
                     .where = call.where(),
                     .fix = str("cast() it to ", dtype, " or compare it first")});
}

void expect_same_dtypes(const OpCall& call) {
  for (const TensorType& input : call.inputs)
    if (input.dtype != call.inputs[0].dtype)
      throw UserError({.code = "op.dtypes-differ",
                       .what = str(call.op->name, " of ", call.inputs[0].dtype, " ", call.in(0), " and ", input.dtype,
                                   " ", input.shape, ": operands must have one dtype"),
                       .where = call.where(),
                       .fix = str("cast() one of them, for instance to ", call.inputs[0].dtype)});
}

void expect_dim(const OpCall& call, const Shape& x, const Dim& dim) {
  if (!x.has(dim))
    throw UserError({.code = "op.unknown-dim",
                     .what = str(call.op->name, " along dim ", dim, ", which ", x, " does not have"),
                     .where = call.where(),
                     .fix = x.has(dim.name) ? str("the dim has size ", x.size_of(dim.name), " there")
                                            : str("name one of its dims: ", join(x.names(), ", "))});
}

Shape broadcast_shape(const OpCall& call, const Shape& x, const Shape& y) {
  for (const Dim& dim : y)
    if (x.has(dim.name) && !x.has(dim))
      throw UserError({.code = "op.sizes-differ",
                       .what = str(call.op->name, " of ", x, " and ", y, ": dim '", dim.name, "' has size ",
                                   x.size_of(dim.name), " in the first and ", dim.size, " in the second"),
                       .where = call.where(),
                       .fix = "rename() one of the dims or slice() it: dims of one name must have one size"});
  const auto contains_in_order = [](const Shape& big, const Shape& small) {
    auto at = big.begin();
    for (const Dim& dim : small) {
      at = std::find(at, big.end(), dim);
      if (at == big.end()) return false;
      ++at;
    }
    return true;
  };
  if (contains_in_order(x, y)) return x;
  if (contains_in_order(y, x)) return y;
  return x.plus(y);
}

}  // namespace shape_rule

namespace sharding_rule {

std::function<ShardingRule(const OpCall&)> pointwise() {
  return [](const OpCall&) { return ShardingRule{}; };
}

std::function<ShardingRule(const OpCall&)> relayout() {
  return [](const OpCall&) { return ShardingRule{.dims = {}, .reshards_output = true}; };
}

std::function<ShardingRule(const OpCall&)> talks_along(std::string attribute) {
  return [attribute](const OpCall& call) { return ShardingRule{}.talk(call.attr<Dim>(attribute).name); };
}

}  // namespace sharding_rule

namespace lower_rule {

std::function<std::vector<ValueId>(Lowering&)> map(std::string function) {
  return [function](Lowering& l) { return std::vector<ValueId>{l.builder.map(function, l.inputs, l.out())}; };
}

}  // namespace lower_rule

namespace flops_rule {

std::function<double(const OpCall&)> per_element(double flops) {
  return [flops](const OpCall& call) { return flops * static_cast<double>(call.out().elements()); };
}

std::function<double(const OpCall&)> none() {
  return [](const OpCall&) { return 0.0; };
}

}  // namespace flops_rule

}  // namespace weft
