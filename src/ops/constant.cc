// constant: one number or a given table. iota: 0, 1, 2, … along a dim.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

const OpDef& kConstant = define_op({
    .name = "constant",
    .doc = "One number in every element.",
    .shape = shape_rule::stated_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.fill(l.call.attr<Number>("value"), l.out())};
    },
    .flops = flops_rule::none(),
    .samples = {{{},
                 [](Graph& g, const Tensors&) {
                   return Tensors{constant(g, 2.5, {{"a", 6}, {"b", 4}})};
                 }},
                {{}, [](Graph& g, const Tensors&) { return Tensors{constant(g, -3, {}, DType::kI32)}; }}},
});

// The complete table is on every processor; each takes its shard of it, which costs nothing.
std::vector<ValueId> lower_table(Lowering& l) {
  const Array& array = *l.call.attr<std::shared_ptr<const Array>>("values");
  const TensorType& type = l.call.outputs[0];
  Constant numbers;
  for (std::int64_t i = 0; i < array.elements(); ++i) numbers.data.push_back(array.number(i));
  ValueId x = l.builder.emit_one(std::move(numbers), {}, {type.dtype, type.shape, unsplit(type.shape)});
  for (const Dim& dim : type.shape) x = l.builder.shard(x, dim.name, l.axes_of(dim.name));
  return {x};
}

const OpDef& kTable = define_op({
    .name = "table",
    .doc = "Given numbers.",
    .shape = shape_rule::stated_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = lower_table,
    .flops = flops_rule::none(),
    .samples = {{{},
                 [](Graph& g, const Tensors&) {
                   return Tensors{constant(g, Array({{"a", 4}, {"b", 2}}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}))};
                 }}},
});

std::vector<ValueId> lower_iota(Lowering& l) {
  const std::string& dim = l.call.out()[0].name;
  return {l.builder.map({{.op = "index", .dtype = l.call.outputs[0].dtype, .dim = dim}}, {}, l.out())};
}

const OpDef& kIota = define_op({
    .name = "iota",
    .doc = "0, 1, 2, … along a dim; each processor makes its part.",
    .shape = shape_rule::stated_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad&) -> Tensors { return {}; },
    .lower = lower_iota,
    .flops = flops_rule::none(),
    .samples = {{{},
                 [](Graph& g, const Tensors&) {
                   return Tensors{iota(g, {"a", 12})};
                 }},
                {{},
                 [](Graph& g, const Tensors&) {
                   return Tensors{iota(g, {"a", 12}, DType::kF32)};
                 }}},
});

}  // namespace

Tensor constant(const Graph& g, const Number& value, const Shape& shape, DType dtype, Site site) {
  if (const auto why = why_not_held(value, dtype))
    throw UserError({.code = "constant.number-not-held",
                     .what = str("a constant of ", dtype, " ", shape, " from the number ", value, ", ", *why),
                     .where = str("constant at ", to_string(site)),
                     .fix = str("give a number that ", dtype, " holds, or another dtype")});
  return apply_all(g, kConstant, {}, {{"type", TensorType{shape, dtype}}, {"value", value}}, site)[0];
}

Tensor constant(const Graph& g, const Array& values, Site site) {
  return apply_all(
      g, kTable, {},
      {{"type", TensorType{values.shape(), values.dtype()}}, {"values", std::make_shared<const Array>(values)}},
      site)[0];
}

namespace {

Tensor number_everywhere(const Tensor& x, const Number& number, Site site) {
  const OwnDimsGuard own(x.graph());
  return constant(Graph(x.graph()), number, x.shape(), x.dtype(), site);
}

}  // namespace

Tensor zeros_like(const Tensor& x, Site site) { return number_everywhere(x, 0, site); }
Tensor ones_like(const Tensor& x, Site site) { return number_everywhere(x, 1, site); }

Tensor iota(const Graph& g, const Dim& dim, DType dtype, Site site) {
  if (const auto why = why_not_held(dim.size - 1, dtype))
    throw UserError({.code = "iota.number-not-held",
                     .what = str("iota of ", dtype, " along ", dim, " ends with the number ", dim.size - 1, ", ", *why),
                     .where = str("iota at ", to_string(site)),
                     .fix = "give a wider dtype, such as i32 or i64"});
  return apply_all(g, kIota, {}, {{"type", TensorType{{dim}, dtype}}}, site)[0];
}

}  // namespace weft
