// dynamic_slice and dynamic_update: a range of elements at a run-time index, clamped to fit. The index is one for all or
// one for each index of other dims. scatter_update writes each element of a dim at a run-time index of its own. On a
// split dim only what is read or written is sent, never the complete tensor.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

constexpr const char* kRun = "#run";

void expect_index(const OpCall& call, std::size_t i, const Dim& dim) {
  const Shape others = call.in().minus({dim});
  const bool fits = std::ranges::all_of(call.in(i), [&](const Dim& own) { return others.has(own); });
  if (!is_integer(call.inputs[i].dtype) || !fits)
    throw UserError({.code = "dynamic.index-not-whole",
                     .what = str(call.op->name, " along '", dim.name, "' of ", call.in(), " cannot begin at ",
                                 call.inputs[i].dtype, " ", call.in(i)),
                     .where = call.where(),
                     .fix = str("give an i32 or i64 scalar, or such numbers with dims of: ", join(others, ", "))});
}

MapNode input(int i, DType dtype) { return {.op = "input", .dtype = dtype, .input = i}; }
MapNode number(std::int64_t n) { return {.op = "literal", .dtype = DType::kI64, .literal = n}; }
MapNode apply_node(const char* op, std::vector<int> args) {
  return {.op = op, .args = std::move(args), .dtype = DType::kI64};
}

// The type of begin, as i64.
ValueType wide_begin(Builder& b, ValueId begin) {
  ValueType type = b.type(begin);
  type.dtype = DType::kI64;
  return type;
}

// The begin, as i64, moved into [0, most].
ValueId clamped(Builder& b, ValueId begin, std::int64_t most) {
  return b.map({input(0, b.value(begin).dtype), apply_node("cast", {0}), number(0), apply_node("maximum", {1, 2}),
                number(most), apply_node("minimum", {3, 4})},
               {begin}, wide_begin(b, begin));
}

// --- dynamic_slice ---

std::vector<TensorType> slice_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  const auto size = call.attr<std::int64_t>("size");
  shape_rule::expect_dim(call, call.in(), dim);
  expect_index(call, 1, dim);
  if (size < 1 || size > dim.size)
    throw UserError({.code = "dynamic-slice.bad-size",
                     .what = str("dynamic_slice takes ", size, " elements of dim ", dim),
                     .where = call.where(),
                     .fix = str("take between 1 and ", dim.size)});
  return {{call.in().resized(dim.name, size), call.inputs[0].dtype}};
}

// Each processor picks its part of the range, zeros elsewhere; a reduce_scatter of the sum gives every processor its
// part of the result.
ValueId slice_split(Lowering& l, const Dim& dim, std::int64_t size, ValueId begin) {
  Builder& b = l.builder;
  const Axes& axes = l.axes_of(dim.name);
  const Shape run{{kRun, size}};
  ValueType run_type = b.type(begin);
  run_type.shape = run_type.shape.plus(run);
  run_type.sharding.dims.emplace_back();
  const ValueId indices =
      b.map({input(0, DType::kI64), {.op = "index", .dtype = DType::kI64, .dim = kRun}, apply_node("add", {0, 1})},
            {begin}, run_type);
  ValueType part = b.type(l.inputs[0]);
  const std::size_t at = part.shape.position(dim.name);
  part.shape = part.shape.replaced(dim.name, run);
  part.sharding.dims[at] = {};
  part.sharding.partial = axes;
  std::sort(part.sharding.partial.begin(), part.sharding.partial.end());
  part.sharding.pending = part.dtype == DType::kBool ? Reduce::kMax : Reduce::kSum;
  const ValueId picked = b.emit_one(Gather{dim.name}, {l.inputs[0], indices}, part);
  return b.rename(b.reduce_scatter(picked, kRun, axes), kRun, dim.name);
}

std::vector<ValueId> lower_slice(Lowering& l) {
  const Dim dim = l.call.attr<Dim>("dim");
  const auto size = l.call.attr<std::int64_t>("size");
  const ValueId begin = clamped(l.builder, l.inputs[1], dim.size - size);
  if (!l.axes_of(dim.name).empty()) return {slice_split(l, dim, size, begin)};
  return {l.builder.emit_one(DynamicSlice{dim.name}, {l.inputs[0], begin}, l.out())};
}

const SampleInput kLong{{{"a", 6}, {"b", 24}, {"c", 2}}, uniform(-1, 1), DType::kF32};
const SampleInput kPiece{{{"a", 6}, {"b", 12}, {"c", 2}}, uniform(-1, 1), DType::kF32};
const Dim kLongB{"b", 24};

const OpDef& kDynamicSlice = define_op({
    .name = "dynamic_slice",
    .doc = "A run of elements of a dim from a run-time index on.",
    .shape = slice_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      return {dynamic_update(zeros_like(g.x(0)), g.dy(), g.x(1), g.attr<Dim>("dim"), g.site()), Tensor()};
    },
    .lower = lower_slice,
    .flops = flops_rule::none(),
    .samples = {{{kLong, {{}, whole(3, 4), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{dynamic_slice(x[0], x[1], kLongB, 12)}; }},
                {{kLong, {{}, whole(20, 21), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{dynamic_slice(x[0], x[1], kLongB, 12)}; }},
                {{kLong, {{{"c", 2}, {"a", 6}}, whole(-3, 20), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{dynamic_slice(x[0], x[1], kLongB, 12)}; }}},
});

// --- dynamic_update ---

std::vector<TensorType> update_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  shape_rule::expect_dim(call, call.in(), dim);
  expect_index(call, 2, dim);
  const Shape& piece = call.in(1);
  if (!piece.has(dim.name) || piece.size_of(dim.name) > dim.size ||
      !same_dims(piece.resized(dim.name, 1), call.in().resized(dim.name, 1)) ||
      call.inputs[0].dtype != call.inputs[1].dtype)
    throw UserError({.code = "dynamic-update.piece-mismatch",
                     .what = str("dynamic_update along '", dim.name, "' of ", call.inputs[0].dtype, " ", call.in(),
                                 " with ", call.inputs[1].dtype, " ", piece),
                     .where = call.where(),
                     .fix = str("give a piece with the tensor's dtype and dims, with no more of '", dim.name, "'")});
  return {call.inputs[0]};
}

std::vector<ValueId> lower_update(Lowering& l) {
  const Dim dim = l.call.attr<Dim>("dim");
  Builder& b = l.builder;
  const Axes& axes = l.axes_of(dim.name);
  ValueId begin = clamped(b, l.inputs[2], dim.size - l.call.in(1).size_of(dim.name));
  ValueId piece = l.inputs[1];
  if (!axes.empty()) {
    piece = b.all_gather(piece, dim.name, axes);
    const std::int64_t block = b.value(l.inputs[0]).shape.size_of(dim.name);
    begin = b.map({input(0, DType::kI64), input(1, DType::kI64), number(block), apply_node("multiply", {1, 2}),
                   apply_node("subtract", {0, 3})},
                  {begin, b.axis_index(axes)}, wide_begin(b, begin));
  }
  return {b.emit_one(DynamicUpdate{dim.name}, {l.inputs[0], piece, begin}, l.out())};
}

const OpDef& kDynamicUpdate = define_op({
    .name = "dynamic_update",
    .doc = "x with a piece written at a run-time index of a dim.",
    .shape = update_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors {
      const Dim dim = g.attr<Dim>("dim");
      const Tensor dpiece = dynamic_slice(g.dy(), g.x(2), dim, g.x(1).shape().size_of(dim.name), g.site());
      return {dynamic_update(g.dy(), zeros_like(g.x(1)), g.x(2), dim, g.site()),
              transpose(dpiece, g.x(1).shape(), g.site()), Tensor()};
    },
    .lower = lower_update,
    .flops = flops_rule::none(),
    .samples = {{{kLong, kPiece, {{}, whole(5, 6), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{dynamic_update(x[0], x[1], x[2], kLongB)}; }},
                {{kLong, kPiece, {{{"a", 6}}, whole(-3, 20), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{dynamic_update(x[0], x[1], x[2], kLongB)}; }}},
});

// --- scatter_update ---

std::vector<TensorType> scatter_update_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  shape_rule::expect_dim(call, call.in(), dim);
  const Shape &x = call.in(0), &updates = call.in(1), &indices = call.in(2);
  bool fits = call.inputs[0].dtype == call.inputs[1].dtype && updates.rank() == x.rank();
  for (const Dim& own : updates)
    fits = fits && x.has(own.name) && (own.name == dim.name || own.size <= x.size_of(own.name));
  if (!fits)
    throw UserError({.code = "scatter-update.updates-mismatch",
                     .what = str("scatter_update along '", dim.name, "' of ", call.inputs[0].dtype, " ", x, " with ",
                                 call.inputs[1].dtype, " ", updates),
                     .where = call.where(),
                     .fix = str("give updates with the tensor's dtype and dims, other dims than '", dim.name,
                                "' no longer than the tensor's")});
  if (!is_integer(call.inputs[2].dtype) || indices != Shape{updates.dim(dim.name)})
    throw UserError({.code = "scatter-update.bad-indices",
                     .what = str("scatter_update along '", dim.name, "' of ", x, " cannot write ", updates, " at ",
                                 call.inputs[2].dtype, " ", indices),
                     .where = call.where(),
                     .fix = str("give i32 or i64 indices [", updates.dim(dim.name), "]")});
  return {call.inputs[0]};
}

ShardingRule scatter_update_sharding(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  ShardingRule rule;
  rule.talk(dim.name);
  for (const Dim& own : call.in(1))
    if (own.name != dim.name && own.size != call.in(0).size_of(own.name)) rule.whole(own.name);
  return rule;
}

std::vector<ValueId> lower_scatter_update(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  Builder& b = l.builder;
  const Axes& axes = l.axes_of(dim);
  ValueId updates = l.inputs[1], places = l.inputs[2];
  if (!axes.empty()) {
    updates = b.all_gather(updates, dim, axes);
    places = b.all_gather(places, dim, axes);
    const std::int64_t block = b.value(l.inputs[0]).shape.size_of(dim);
    places = b.map({input(0, b.value(places).dtype), apply_node("cast", {0}), input(1, DType::kI64), number(block),
                    apply_node("multiply", {2, 3}), apply_node("subtract", {1, 4})},
                   {places, b.axis_index(axes)}, wide_begin(b, places));
  }
  return {b.emit_one(DynamicUpdate{dim}, {l.inputs[0], updates, places}, l.out())};
}

// The corner of x that has the sizes of `shape`, apart from `dim`.
Tensor corner_of(Tensor x, const Shape& shape, const Dim& dim, Site site) {
  for (const Dim& own : shape)
    if (own.name != dim.name && own.size < x.shape().size_of(own.name)) x = slice(x, own.name, 0, own.size, site);
  return x;
}

// Every second index from -1 on: the first one is out of range.
Tensor sample_places(Graph& g) { return subtract(multiply(iota(g, {"b", 12}, DType::kI32), 2.0), 1.0); }

const OpDef& kScatterUpdate = define_op({
    .name = "scatter_update",
    .doc = "x with each update written at its index of a dim; indices out of range are dropped.",
    .shape = scatter_update_type,
    .sharding = scatter_update_sharding,
    .gradient = [](const Grad& g) -> Tensors {
      const Dim dim = g.attr<Dim>("dim");
      const Shape& updates = g.x(1).shape();
      constexpr const char* kPlace = "#place";
      const Tensor places = rename(g.x(2), updates.dim(dim.name), kPlace, g.site());
      const Tensor taken = gather(corner_of(g.dy(), updates, dim, g.site()), places, dim, g.site());
      const Tensor dupdates = rename(taken, {kPlace, updates.size_of(dim.name)}, dim.name, g.site());
      return {scatter_update(g.dy(), zeros_like(g.x(1)), g.x(2), dim, g.site()), transpose(dupdates, updates, g.site()),
              Tensor()};
    },
    .lower = lower_scatter_update,
    .flops = flops_rule::none(),
    .samples =
        {{{kLong, kPiece},
          [](Graph& g, const Tensors& x) { return Tensors{scatter_update(x[0], x[1], sample_places(g), kLongB)}; }},
         {{kLong, {{{"c", 2}, {"a", 4}, {"b", 12}}, uniform(-1, 1), DType::kF32}},
          [](Graph& g, const Tensors& x) { return Tensors{scatter_update(x[0], x[1], sample_places(g), kLongB)}; }}},
});

}  // namespace

Tensor scatter_update(const Tensor& x, const Tensor& updates, const Tensor& indices, const DimRef& dim, Site site) {
  return apply(kScatterUpdate, {x, updates, indices}, {{"dim", dim.in(x, site)}}, site);
}

Tensor dynamic_slice(const Tensor& x, const Tensor& begin, const DimRef& dim, std::int64_t size, Site site) {
  return apply(kDynamicSlice, {x, begin}, {{"dim", dim.in(x, site)}, {"size", size}}, site);
}

Tensor dynamic_update(const Tensor& x, const Tensor& piece, const Tensor& begin, const DimRef& dim, Site site) {
  return apply(kDynamicUpdate, {x, piece, begin}, {{"dim", dim.in(x, site)}}, site);
}

}  // namespace weft
