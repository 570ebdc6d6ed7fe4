// reduce: reduces dims by sum, max, min or product. Mean, any, all and the log of the sum of exponentials are
// functions.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

std::vector<TensorType> reduce_type(const OpCall& call) {
  const Shape& output = call.attr<Shape>("output");
  for (const Dim& dim : output)
    if (!call.in().has(dim))
      throw UserError({.code = "reduce.unknown-output-dim",
                       .what = str("cannot reduce ", call.in(), " to ", output, ": it has no dim ", dim),
                       .where = call.where(),
                       .fix = "name only dims of the tensor"});
  return {{output, call.inputs[0].dtype}};
}

ShardingRule reduce_sharding(const OpCall& call) {
  ShardingRule rule;
  for (const Dim& dim : call.in())
    if (!call.out().has(dim)) rule.reduce(dim.name, call.attr<Reduce>("how"));
  return rule;
}

// All elements that equal the largest (or smallest) share the gradient evenly.
Tensor gradient_of_extremum(const Grad& g) {
  const Shape& shape = g.x().shape();
  const Tensor winners = cast(equal(g.x(), broadcast(g.y(), shape)), g.x().dtype());
  const Tensor share = g.dy() / reduce_sum_to(winners, g.y().shape(), g.site());
  return winners * broadcast(share, shape);
}

// The product of all other elements: p / x if no element is zero. If exactly one element is zero, only that element has
// a gradient.
Tensor gradient_of_product(const Grad& g) {
  const Shape& out = g.y().shape();
  const Tensor is_zero = equal(g.x(), 0.0);
  const Tensor zeros = reduce_sum_to(cast(is_zero, g.x().dtype()), out, g.site());
  const Tensor safe = select(is_zero, 1.0, g.x());
  const Tensor product = reduce_product(safe, g.x().shape().minus(out), g.site());
  const Tensor others =
      select(is_zero, select(equal(zeros, 1.0), product, 0.0), select(equal(zeros, 0.0), product / safe, 0.0));
  return others * g.dy();
}

Tensors reduce_gradient(const Grad& g) {
  switch (g.attr<Reduce>("how")) {
    case Reduce::kSum: return {broadcast(g.dy(), g.x().shape(), g.site())};
    case Reduce::kProduct: return {transpose(gradient_of_product(g), g.x().shape(), g.site())};
    default: return {gradient_of_extremum(g)};
  }
}

std::vector<Sample> reduce_samples() {
  const SampleInput x{{{"a", 6}, {"b", 4}, {"c", 2}}, uniform(-1.5, 1.5), DType::kF32};
  const Dim a{"a", 6}, b{"b", 4}, c{"c", 2};
  return {{{x}, [=](Graph&, const Tensors& t) { return Tensors{reduce_sum(t[0], {b})}; }},
          {{x},
           [=](Graph&, const Tensors& t) {
             return Tensors{reduce_sum_to(t[0], {c, a})};
           }},
          {{x}, [=](Graph&, const Tensors& t) { return Tensors{mean(t[0])}; }},
          {{x}, [=](Graph&, const Tensors& t) { return Tensors{reduce_max(t[0], {a})}; }},
          {{x},
           [=](Graph&, const Tensors& t) {
             return Tensors{reduce_min(t[0], {a, c})};
           }},
          {{x}, [=](Graph&, const Tensors& t) { return Tensors{reduce_product(t[0], {b})}; }},
          {{{x.shape, whole(-9, 9), DType::kI32}},
           [=](Graph&, const Tensors& t) { return Tensors{reduce_sum(t[0], {a})}; }},
          {{{x.shape, whole(0, 2), DType::kBool}}, [=](Graph&, const Tensors& t) {
             return Tensors{reduce_any(t[0], {a}), reduce_all(t[0], {b})};
           }}};
}

const OpDef& kReduce = define_op({
    .name = "reduce",
    .doc = "Joins dims by sum, max, min or product; ties of max and min share the derivative evenly.",
    .shape = reduce_type,
    .sharding = reduce_sharding,
    .gradient = reduce_gradient,
    .lower = [](Lowering& l) -> std::vector<ValueId> {
      return {l.builder.reduce(l.call.attr<Reduce>("how"), l.inputs[0], l.out())};
    },
    .flops = [](const OpCall& call) { return static_cast<double>(call.in().elements()); },
    .samples = reduce_samples(),
});

Tensor reduce(const Tensor& x, Reduce how, const DimRefs& named, Site site) {
  const Shape dims = named.in(x, site);
  for (const Dim& dim : dims)
    if (!x.shape().has(dim))
      throw UserError(
          {.code = "reduce.unknown-dim",
           .what = str("cannot reduce dim ", dim, " of '", x.name(), "' ", x.shape(), ": the tensor does not have it"),
           .where = str("reduce_", how, " at ", to_string(site)),
           .fix = str("name dims of the tensor, with their sizes: ", join(x.shape(), ", "))});
  if (dims.empty()) return x;
  return apply(kReduce, {x}, {{"how", how}, {"output", x.shape().minus(dims)}}, site);
}

Tensor expect_bool(const Tensor& x, const char* function, Site site) {
  if (x.dtype() != DType::kBool)
    throw UserError({.code = "reduce.not-bool",
                     .what = str(function, " of '", x.name(), "', which is ", x.dtype(), ", not bool"),
                     .where = str(function, " at ", to_string(site)),
                     .fix = "compare it first, for instance not_equal(x, 0)"});
  return x;
}

}  // namespace

Tensor reduce_sum(const Tensor& x, const DimRefs& dims, Site site) { return reduce(x, Reduce::kSum, dims, site); }
Tensor reduce_sum(const Tensor& x, Site site) { return reduce(x, Reduce::kSum, x.shape(), site); }
Tensor reduce_max(const Tensor& x, const DimRefs& dims, Site site) { return reduce(x, Reduce::kMax, dims, site); }
Tensor reduce_max(const Tensor& x, Site site) { return reduce(x, Reduce::kMax, x.shape(), site); }
Tensor reduce_min(const Tensor& x, const DimRefs& dims, Site site) { return reduce(x, Reduce::kMin, dims, site); }
Tensor reduce_min(const Tensor& x, Site site) { return reduce(x, Reduce::kMin, x.shape(), site); }
Tensor reduce_product(const Tensor& x, const DimRefs& dims, Site site) {
  return reduce(x, Reduce::kProduct, dims, site);
}
Tensor reduce_product(const Tensor& x, Site site) { return reduce(x, Reduce::kProduct, x.shape(), site); }
Tensor reduce_any(const Tensor& x, const DimRefs& dims, Site site) {
  return reduce(expect_bool(x, "reduce_any", site), Reduce::kMax, dims, site);
}
Tensor reduce_any(const Tensor& x, Site site) { return reduce_any(x, x.shape(), site); }
Tensor reduce_all(const Tensor& x, const DimRefs& dims, Site site) {
  return reduce(expect_bool(x, "reduce_all", site), Reduce::kMin, dims, site);
}
Tensor reduce_all(const Tensor& x, Site site) { return reduce_all(x, x.shape(), site); }

Tensor mean(const Tensor& x, const DimRefs& named, Site site) {
  const Shape dims = named.in(x, site);
  return multiply(reduce_sum(x, dims, site), 1.0 / static_cast<double>(dims.elements()), site);
}
Tensor mean(const Tensor& x, Site site) { return mean(x, x.shape(), site); }

Tensor reduce_sum_to(const Tensor& x, const DimRefs& dims, Site site) {
  const Shape output = dims.in(x, site);
  if (same_dims(x.shape(), output)) return transpose(x, output, site);
  return apply(kReduce, {x}, {{"how", Reduce::kSum}, {"output", output}}, site);
}

}  // namespace weft
