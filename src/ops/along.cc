// take_along and its transpose put_along: every line along a dim has separate indices. On a split dim the processors
// divide the lines, which costs an all_to_all per operand and result.
#include "ops/along.h"

#include "base/str.h"
#include "ops/samples.h"

namespace weft {

namespace {

constexpr const char* kAt = "#at";

// A dim other than `dim` that can take its axes in all the values; empty if there is none.
std::string dim_to_split(const Builder& b, const std::string& dim, const Axes& axes,
                         const std::vector<ValueId>& values) {
  for (const Dim& other : b.value(values[0]).shape) {
    if (other.name == dim || other.size % b.mesh().size(axes) != 0) continue;
    bool in_all = true;
    for (ValueId x : values) in_all = in_all && b.value(x).shape.has(other.name);
    if (in_all) return other.name;
  }
  return {};
}

}  // namespace

std::vector<ValueId> with_whole_lines(Lowering& l, const std::string& dim, const std::vector<ValueId>& values) {
  const Axes& axes = l.axes_of(dim);
  if (axes.empty()) return values;
  const std::string other = dim_to_split(l.builder, dim, axes, values);
  std::vector<ValueId> whole;
  for (ValueId x : values) {
    const Shape shape = l.builder.value(x).shape;
    Sharding want = l.builder.value(x).sharding;
    if (const auto at = shape.find(dim)) want.dims[*at] = {};
    if (!other.empty()) {
      Axes& more = want.dims[shape.position(other)];
      more.insert(more.end(), axes.begin(), axes.end());
    }
    whole.push_back(l.context.reshard(x, want));
  }
  return whole;
}

namespace {

void expect_lines(const OpCall& call, const Shape& x, const Shape& indices, const Dim& dim) {
  if (!is_integer(call.inputs[1].dtype))
    throw UserError(
        {.code = "along.indices-not-whole",
         .what = str(call.op->name, " needs whole numbers as indices, not ", call.inputs[1].dtype, " ", indices),
         .where = call.where(),
         .fix = "cast() the indices to i32"});
  bool fits = indices.has(dim.name);
  for (const Dim& other : indices) fits = fits && (other.name == dim.name || x.has(other));
  if (!fits)
    throw UserError({.code = "along.indices-mismatch",
                     .what = str(call.op->name, " along '", dim.name, "' of ", x, " with indices ", indices),
                     .where = call.where(),
                     .fix = str("the indices need dim '", dim.name, "', and no dim that the tensor lacks")});
}

std::vector<TensorType> take_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  shape_rule::expect_dim(call, call.in(0), dim);
  expect_lines(call, call.in(0), call.in(1), dim);
  return {{call.in(0).resized(dim.name, call.in(1).size_of(dim.name)), call.inputs[0].dtype}};
}

std::vector<ValueId> lower_take(Lowering& l) {
  Builder& b = l.builder;
  const std::string dim = l.call.attr<Dim>("dim").name;
  const std::vector<ValueId> in = with_whole_lines(l, dim, l.inputs);
  ValueType out = b.type(in[0]);
  out.shape = out.shape.replaced(dim, {{kAt, l.call.in(1).size_of(dim)}});
  return {b.rename(b.emit_one(Gather{dim}, {in[0], b.rename(in[1], dim, kAt)}, out), kAt, dim)};
}

std::vector<TensorType> put_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  expect_lines(call, call.in(0), call.in(1), dim);
  if (!call.in(0).has(dim.name) || call.in(0).size_of(dim.name) != call.in(1).size_of(dim.name))
    throw UserError({.code = "put-along.indices-mismatch",
                     .what = str("put_along '", dim.name, "' of ", call.in(0), " with indices ", call.in(1)),
                     .where = call.where(),
                     .fix = "give one index along the dim for each element that is put"});
  return {{call.in(0).resized(dim.name, dim.size), call.inputs[0].dtype}};
}

std::vector<ValueId> lower_put(Lowering& l) {
  Builder& b = l.builder;
  const Dim dim = l.call.attr<Dim>("dim");
  const std::vector<ValueId> in = with_whole_lines(l, dim.name, l.inputs);
  ValueType out = b.type(in[0]);
  out.shape = out.shape.resized(dim.name, dim.size);
  const ValueId updates = b.rename(in[0], dim.name, kAt), indices = b.rename(in[1], dim.name, kAt);
  return {b.emit_one(ScatterAdd{dim.name}, {indices, updates}, out)};
}

const OpDef& kTakeAlong = define_op({
    .name = "take_along",
    .doc = "Elements of x along a dim, with an index for every position; zeros where an index is out of range.",
    .shape = take_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      return {put_along(g.dy(), g.x(1), g.attr<Dim>("dim"), g.site()), Tensor()};
    },
    .lower = lower_take,
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput, {{{"a", 6}, kSampleDim, {"c", 2}}, whole(-1, 14), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{take_along(x[0], x[1], kSampleDim)}; }},
                {{kSampleInput, {{{"b", 4}, {"a", 6}}, whole(0, 12), DType::kI64}},
                 [](Graph&, const Tensors& x) { return Tensors{take_along(x[0], x[1], kSampleDim)}; }},
                {{kSampleInput, {{{"b", 6}}, whole(0, 12), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{take_along(x[0], x[1], kSampleDim)}; }}},
});

const OpDef& kPutAlong = define_op({
    .name = "put_along",
    .doc = "Zeros, and each element of a line added at its index of the dim; indices out of range are dropped.",
    .shape = put_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      return {take_along(g.dy(), g.x(1), g.attr<Dim>("dim"), g.site()), Tensor()};
    },
    .lower = lower_put,
    .flops = [](const OpCall& call) { return static_cast<double>(call.in(0).elements()); },
    .samples = {{{kSampleInput, {{{"a", 6}, kSampleDim, {"c", 2}}, whole(-1, 14), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{put_along(x[0], x[1], kSampleDim)}; }},
                {{kSampleInput, {{kSampleDim, {"c", 2}}, whole(0, 4), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{put_along(x[0], x[1], {"b", 4})};
                 }}},
});

}  // namespace

Tensor take_along(const Tensor& x, const Tensor& indices, const DimRef& dim, Site site) {
  return apply(kTakeAlong, {x, indices}, {{"dim", dim.in(x, site)}}, site);
}

Tensor put_along(const Tensor& x, const Tensor& indices, const Dim& dim, Site site) {
  return apply(kPutAlong, {x, indices}, {{"dim", dim}}, site);
}

Tensor dynamic_shift(const Tensor& x, const Tensor& offset, const DimRef& along, bool wrap, Site site) {
  const Dim dim = along.in(x, site);
  if (!is_integer(offset.dtype()) || offset.shape().has(dim.name))
    throw UserError({.code = "dynamic-shift.bad-offset",
                     .what = str("dynamic_shift cannot move along ", dim, " by ", offset.dtype(), " ", offset.shape()),
                     .where = str("dynamic_shift at ", to_string(site)),
                     .fix = str("give whole offsets without dim '", dim.name, "'")});
  const Tensor place = subtract(iota(Graph(x.graph()), dim, DType::kI64, site), cast(offset, DType::kI64, site), site);
  return take_along(x, wrap ? mod(place, dim.size, site) : place, dim, site);
}

}  // namespace weft
