// gather and its transpose scatter_add. On a split dim each processor handles the indices that fall into its shard.
// gather then needs a sum over the processors, scatter_add needs nothing.
#include "base/str.h"
#include "ops/rules.h"
#include "ops/samples.h"

namespace weft {

namespace {

// Whether each index equals each position of the dim. Indices of a dtype that is too narrow for the dim are widened.
Tensor hits(const Tensor& indices, const Dim& dim, Site site) {
  const Tensor x = why_not_held(dim.size - 1, indices.dtype()) ? cast(indices, DType::kI64, site) : indices;
  return equal(x, iota(Graph(x.graph()), dim, x.dtype(), site), site);
}

void expect_indices(const OpCall& call, std::size_t i) {
  if (!is_integer(call.inputs[i].dtype))
    throw UserError(
        {.code = "gather.indices-not-whole",
         .what = str(call.op->name, " needs whole numbers as indices, not ", call.inputs[i].dtype, " ", call.in(i)),
         .where = call.where(),
         .fix = "cast() the indices to i32"});
}

std::vector<TensorType> gather_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  shape_rule::expect_dim(call, call.in(), dim);
  expect_indices(call, 1);
  if (call.in(1).has(dim.name))
    throw UserError(
        {.code = "gather.dim-in-indices",
         .what = str("gather along '", dim.name, "' with indices ", call.in(1), ": the indices have that dim too"),
         .where = call.where(),
         .fix = "rename() the dim of the indices"});
  const Shape rest = call.in(0).minus({dim});
  shape_rule::broadcast_shape(call, call.in(1), rest);
  return {{call.in(1).plus(rest), call.inputs[0].dtype}};
}

const OpDef& kGather = define_op({
    .name = "gather",
    .doc = "x at given indices of a dim; zeros where an index is out of range.",
    .shape = gather_type,
    .sharding =
        [](const OpCall& call) {
          return ShardingRule{}.reduce(call.attr<Dim>("dim").name,
                                       call.inputs[0].dtype == DType::kBool ? Reduce::kMax : Reduce::kSum);
        },
    .gradient = [](const Grad& g) -> Tensors {
      const Dim dim = g.attr<Dim>("dim");
      if (same_dims(g.x(0).shape().minus({dim}), g.x(1).shape())) {  // each line has one index: no sum is needed
        const Tensor hit = hits(g.x(1), dim, g.site());
        return {transpose(select(hit, g.dy(), 0.0, g.site()), g.x(0).shape(), g.site()), Tensor()};
      }
      const Tensor dx = scatter_add(g.dy(), g.x(1), dim, g.x(0).shape().minus({dim}), g.site());
      return {transpose(dx, g.x(0).shape(), g.site()), Tensor()};
    },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.emit_one(Gather{l.call.attr<Dim>("dim").name}, l.inputs, l.out())};
    },
    .flops = flops_rule::none(),
    .samples = {{{kSampleInput, {{{"e", 4}, {"f", 2}}, whole(-1, 14), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{gather(x[0], x[1], kSampleDim)}; }},
                {{kSampleInput, {{{"a", 6}, {"e", 4}}, whole(0, 12), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{gather(x[0], x[1], kSampleDim)}; }},
                {{kSampleInput, {{}, whole(0, 12), DType::kI64}},
                 [](Graph&, const Tensors& x) { return Tensors{gather(x[0], x[1], kSampleDim)}; }}},
});

std::vector<TensorType> scatter_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim");
  const Shape &updates = call.in(0), &indices = call.in(1), &keep = call.attr<Shape>("keep");
  expect_indices(call, 1);
  for (const Dim& index : indices)
    if (!updates.has(index))
      throw UserError(
          {.code = "scatter-add.updates-lack-dim",
           .what = str("scatter_add of updates ", updates, " at indices ", indices, ": the updates lack dim ", index),
           .where = call.where(),
           .fix = "broadcast() the updates to the dims of the indices first"});
  if (updates.has(dim.name))
    throw UserError({.code = "scatter-add.dim-in-updates",
                     .what = str("scatter_add along '", dim.name, "', which the updates ", updates, " have already"),
                     .where = call.where(),
                     .fix = "rename() that dim of the updates"});
  std::vector<Dim> dims;
  for (const Dim& d : updates)
    if (!indices.has(d.name) || keep.has(d.name)) dims.push_back(d);
  return {{Shape{dim}.plus(dims), call.inputs[0].dtype}};
}

ShardingRule scatter_sharding(const OpCall& call) {
  ShardingRule rule;
  for (const Dim& dim : call.in(0))
    if (!call.out().has(dim.name)) rule.reduce(dim.name, Reduce::kSum);
  return rule;
}

const OpDef& kScatterAdd = define_op({
    .name = "scatter_add",
    .doc = "Zeros, and each update added at its index of a dim; indices out of range are dropped.",
    .shape = scatter_type,
    .sharding = scatter_sharding,
    .gradient = [](const Grad& g) -> Tensors {
      return {transpose(gather(g.dy(), g.x(1), g.attr<Dim>("dim"), g.site()), g.x(0).shape(), g.site()), Tensor()};
    },
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.emit_one(ScatterAdd{l.call.attr<Dim>("dim").name}, {l.inputs[1], l.inputs[0]}, l.out())};
    },
    .flops = [](const OpCall& call) { return static_cast<double>(call.in(0).elements()); },
    .samples = {{{{{{"e", 4}, {"a", 6}}, uniform(-1, 1), DType::kF32}, {{{"e", 4}}, whole(-1, 14), DType::kI32}},
                 [](Graph&, const Tensors& x) { return Tensors{scatter_add(x[0], x[1], kSampleDim)}; }},
                {{{{{"e", 4}, {"a", 6}, {"c", 2}}, uniform(-1, 1), DType::kF32},
                  {{{"a", 6}, {"e", 4}}, whole(0, 12), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{scatter_add(x[0], x[1], kSampleDim, {{"a", 6}})};
                 }}},
});

}  // namespace

Tensor gather(const Tensor& x, const Tensor& indices, const DimRef& dim, Site site) {
  return apply(kGather, {x, indices}, {{"dim", dim.in(x, site)}}, site);
}

Tensor scatter_add(const Tensor& updates, const Tensor& indices, const Dim& dim, const DimRefs& keep, Site site) {
  return apply(kScatterAdd, {updates, indices}, {{"dim", dim}, {"keep", keep.in(indices, site)}}, site);
}

Tensor one_hot(const Tensor& indices, const Dim& dim, double on, double off, DType dtype, Site site) {
  const Graph g(indices.graph());
  const Tensor hit = hits(indices, dim, site);
  return select(hit, constant(g, on, {}, dtype, site), constant(g, off, {}, dtype, site), site);
}

}  // namespace weft
