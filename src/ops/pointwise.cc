#include "ops/pointwise.h"

#include "base/str.h"
#include "kernels/pointwise.h"

namespace weft {

namespace {

// The table is ready before any op registers itself: it is a constant.
const Pointwise& entry(const std::string& name) {
  const Pointwise* function = find_pointwise(name);
  if (!function) throw InternalError(str("the op '", name, "' has no entry in kernels/pointwise-inl.h"));
  return *function;
}

}  // namespace

const OpDef& unary(const std::string& name, const std::string& doc, Fill fill,
                   std::function<Tensor(const Grad&)> gradient) {
  return define_op({
      .name = name,
      .doc = doc,
      .shape =
          [](const OpCall& call) {
            shape_rule::expect_float(call);
            return std::vector<TensorType>{call.inputs[0]};
          },
      .sharding = sharding_rule::pointwise(),
      .gradient = [gradient](const Grad& g) -> Tensors { return {gradient(g)}; },
      .lower = lower_rule::map(name),
      .flops = flops_rule::per_element(entry(name).flops),
      .samples = {sample({{"a", 6}, {"b", 4}}, fill), sample({}, fill)},
  });
}

namespace {

std::vector<TensorType> binary_type(const BinaryDef& def, const OpCall& call) {
  shape_rule::expect_same_dtypes(call);
  const DType dtype = call.inputs[0].dtype;
  const Pointwise& function = entry(def.name);
  if (!function.takes_dtype(dtype))
    throw UserError(
        {.code = "pointwise.dtype-not-taken",
         .what = str(def.name, " does not take ", dtype, " operands, as here ", call.in(0), " and ", call.in(1)),
         .where = call.where(),
         .fix = function.takes == pointwise::kBools ? "compare the operands first: logical functions take bool"
                                                    : "cast() the operands to a dtype it takes, such as f32 or i32"});
  return {{shape_rule::broadcast_shape(call, call.in(0), call.in(1)), function.result(dtype)}};
}

std::vector<Sample> binary_samples(const BinaryDef& def) {
  const Pointwise& function = entry(def.name);
  const DType dtype = function.takes_dtype(DType::kF32) ? DType::kF32 : DType::kBool;
  const Shape ab{{"a", 6}, {"b", 4}}, b{{"b", 4}}, bc{{"b", 4}, {"c", 2}}, ba{{"b", 4}, {"a", 6}};
  std::vector<Sample> samples;
  for (const Shape& other : {ab, b, bc, ba})
    samples.push_back({{{ab, def.fill_x, dtype}, {other, def.fill_y, dtype}}, {}});
  samples.push_back({{{b, def.fill_x, dtype}, {ab, def.fill_y, dtype}}, {}});
  if (function.takes_dtype(DType::kI32))
    samples.push_back({{{ab, whole(-9, 10), DType::kI32}, {b, whole(1, 5), DType::kI32}}, {}});
  return samples;
}

}  // namespace

const OpDef& binary(BinaryDef def) {
  OpDef op{
      .name = def.name,
      .doc = def.doc,
      .shape = [def](const OpCall& call) { return binary_type(def, call); },
      .sharding = sharding_rule::pointwise(),
      .gradient = {},
      .no_gradient = def.no_gradient,
      .lower = lower_rule::map(def.name),
      .flops = flops_rule::per_element(entry(def.name).flops),
      .samples = binary_samples(def),
  };
  if (def.gradient)
    op.gradient = [gradient = def.gradient](const Grad& g) {
      Tensors dxs = gradient(g);
      for (std::size_t i = 0; i < 2; ++i)
        if (dxs[i]) dxs[i] = reduce_sum_to(dxs[i], g.x(i).shape(), g.site());
      return dxs;
    };
  return define_op(std::move(op));
}

Tensor number_like(const Tensor& x, const Number& number, const std::string& op, Site site) {
  if (const auto why = why_not_held(number, x.dtype()))
    throw UserError({.code = "pointwise.number-not-held",
                     .what = str(op, " of ", x.dtype(), " ", x.shape(), " and the number ", number, ", ", *why),
                     .where = str(op, " at ", to_string(site)),
                     .fix = str("cast() the tensor to ", is_float(x.dtype()) ? "f64" : "f32",
                                " first: a number takes the dtype of the tensor operand")});
  return constant(Graph(x.graph()), number, {}, x.dtype(), site);
}

Tensor apply_binary(const OpDef& op, const Operand& x, const Operand& y, Site site) {
  if (!x.tensor() && !y.tensor())
    throw UserError({.code = "pointwise.no-tensor",
                     .what = str(op.name, " was given two numbers"),
                     .where = str(op.name, " at ", to_string(site)),
                     .fix = "give at least one tensor as an operand"});
  const Tensor& some = x.tensor() ? x.tensor() : y.tensor();
  const auto tensor = [&](const Operand& operand) {
    return operand.tensor() ? operand.tensor() : number_like(some, operand.number(), op.name, site);
  };
  return apply(op, {tensor(x), tensor(y)}, site);
}

}  // namespace weft
