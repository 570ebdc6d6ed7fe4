// sort, and top_k, which returns only the first k. On a split dim the processors of sort divide the lines. In top_k
// every processor picks the best of its shard; the picks are gathered and picked from again, so k elements per
// processor are sent.
#include <cmath>

#include "base/str.h"
#include "ops/along.h"
#include "ops/samples.h"

namespace weft {

namespace {

constexpr const char* kLocal = "#k";

std::vector<TensorType> top_k_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim"), k = call.attr<Dim>("k");
  shape_rule::expect_dim(call, call.in(), dim);
  if (k.size > dim.size || call.in().has(k.name))
    throw UserError({.code = "top-k.bad-k",
                     .what = str("cannot take top_k of dim ", dim, " of ", call.in(), " into ", k),
                     .where = call.where(),
                     .fix = "give k a new name and at most the size of the dim it picks from"});
  const Shape shape = call.in().minus({dim}).plus({k});
  return {{shape, call.inputs[0].dtype}, {shape, DType::kI32}};
}

// The types of values and indices picked from x along `dim` into the new dim `k`, split over `axes`.
std::vector<ValueType> picked(Lowering& l, ValueId x, const std::string& dim, const Dim& k, const Axes& axes) {
  ValueType type = l.builder.type(x);
  const std::size_t at = type.shape.position(dim);
  type.shape = type.shape.minus({type.shape[at]}).plus({k});
  type.sharding.dims.erase(type.sharding.dims.begin() + static_cast<std::ptrdiff_t>(at));
  type.sharding.dims.push_back(axes);
  ValueType indices = type;
  indices.dtype = DType::kI32;
  return {type, indices};
}

std::vector<ValueId> lower_top_k(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const Dim k = l.call.attr<Dim>("k");
  const bool smallest = l.call.attr<bool>("smallest");
  const Axes& axes = l.axes_of(dim);
  Builder& b = l.builder;
  std::vector<ValueId> found = l.inputs;
  std::string from = dim;
  if (!axes.empty()) {
    const std::int64_t mine = std::min(k.size, b.value(l.inputs[0]).shape.size_of(dim));
    found = b.emit(Sort{dim, kLocal, smallest}, l.inputs, picked(l, l.inputs[0], dim, {kLocal, mine}, axes));
    for (ValueId& x : found) x = b.all_gather(x, kLocal, axes);
    from = kLocal;
  }
  found = b.emit(Sort{from, k.name, smallest}, found, picked(l, found[0], from, k, {}));
  for (ValueId& x : found) x = b.shard(x, k.name, l.axes_of(k.name));
  return found;
}

Tensors top_k_gradient(const Grad& g) {
  const Dim dim = g.attr<Dim>("dim");
  const Tensor dx = scatter_add(g.dy(0), g.y(1), dim, g.x().shape().minus({dim}), g.site());
  return {transpose(dx, g.x().shape(), g.site())};
}

const OpDef& kTopK = define_op({
    .name = "top_k",
    .doc = "The k largest (or smallest) along a dim, in order, ties to the lower index, and their indices.",
    .shape = top_k_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = top_k_gradient,
    .lower = lower_top_k,
    .flops = [](const OpCall& call) { return static_cast<double>(call.in().elements()); },
    .samples = {{{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   const TopKResult r = top_k(x[0], {"b", 12}, {"k", 4});
                   return Tensors{r.values, r.indices};
                 }},
                {{{kSampleInput.shape, whole(-2, 2), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{top_k(x[0], {"b", 12}, {"k", 4}).indices};
                 }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{argmax(x[0], {"a", 6}), argmin(x[0], {"a", 6})};
                 }},
                {{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   return Tensors{nth_largest(x[0], 2, {"b", 12}), nth_smallest(x[0], 1, {"a", 6})};
                 }},
                {{{kSampleInput.shape, whole(-2, 2), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   const TopKResult r = top_k(x[0], {"b", 12}, {"k", 4}, true);
                   return Tensors{r.values, r.indices};
                 }}},
});

// --- sort ---

std::vector<TensorType> sort_type(const OpCall& call) {
  shape_rule::expect_dim(call, call.in(), call.attr<Dim>("dim"));
  return {call.inputs[0], {call.in(), DType::kI32}};
}

std::vector<ValueId> lower_sort(Lowering& l) {
  const std::string dim = l.call.attr<Dim>("dim").name;
  const std::vector<ValueId> x = with_whole_lines(l, dim, l.inputs);
  const ValueType values = l.builder.type(x[0]);
  ValueType indices = values;
  indices.dtype = DType::kI32;
  return l.builder.emit(Sort{dim, dim, !l.call.attr<bool>("descending")}, x, {values, indices});
}

// n log2 n comparisons per line.
double sort_flops(const OpCall& call) {
  const auto size = static_cast<double>(call.attr<Dim>("dim").size);
  return static_cast<double>(call.in().elements()) * std::ceil(std::log2(size));
}

const OpDef& kSort = define_op({
    .name = "sort",
    .doc = "The lines along a dim in ascending or descending order, ties to the lower index, and where each was.",
    .shape = sort_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = [](const Grad& g) -> Tensors { return {put_along(g.dy(0), g.y(1), g.attr<Dim>("dim"), g.site())}; },
    .lower = lower_sort,
    .flops = sort_flops,
    .samples = {{{kSampleInput},
                 [](Graph&, const Tensors& x) {
                   const SortResult r = sort(x[0], {"b", 12});
                   return Tensors{r.values, r.indices};
                 }},
                {{{kSampleInput.shape, whole(-2, 2), DType::kI32}},
                 [](Graph&, const Tensors& x) {
                   const SortResult r = sort(x[0], {"a", 6}, true);
                   return Tensors{r.values, r.indices};
                 }},
                {{{{{"b", 12}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{sort(x[0], {"b", 12}, true).values};
                 }}},
});

// The element of rank n along the dim, counted from 0.
Tensor nth(const char* name, const Tensor& x, std::int64_t n, const Dim& dim, bool smallest, Site site) {
  if (n < 0 || n >= dim.size)
    throw UserError({.code = "nth.out-of-range",
                     .what = str(name, " of number ", n, " of dim ", dim),
                     .where = str(name, " at ", to_string(site)),
                     .fix = str("give a number from 0, the first, to ", dim.size - 1)});
  const OwnDimsGuard own(x.graph());
  const Dim first{"#first", n + 1};
  const Tensor best = top_k(x, dim, first, smallest, site).values;
  return reshape(slice(best, first, n, 1, site), x.shape().minus({dim}), site);
}

}  // namespace

TopKResult top_k(const Tensor& x, const DimRef& dim, const Dim& k, bool smallest, Site site) {
  const Tensors results = apply_all(kTopK, {x}, {{"dim", dim.in(x, site)}, {"k", k}, {"smallest", smallest}}, site);
  return {results[0], results[1]};
}

Tensor argmax(const Tensor& x, const DimRef& along, Site site) {
  const Dim dim = along.in(x, site);
  const OwnDimsGuard own(x.graph());
  return reshape(top_k(x, dim, {"#best", 1}, false, site).indices, x.shape().minus({dim}), site);
}
Tensor argmin(const Tensor& x, const DimRef& along, Site site) {
  const Dim dim = along.in(x, site);
  const OwnDimsGuard own(x.graph());
  return reshape(top_k(x, dim, {"#best", 1}, true, site).indices, x.shape().minus({dim}), site);
}

SortResult sort(const Tensor& x, const DimRef& dim, bool descending, Site site) {
  const Tensors results = apply_all(kSort, {x}, {{"dim", dim.in(x, site)}, {"descending", descending}}, site);
  return {results[0], results[1]};
}

Tensor nth_largest(const Tensor& x, std::int64_t n, const DimRef& dim, Site site) {
  return nth("nth_largest", x, n, dim.in(x, site), false, site);
}
Tensor nth_smallest(const Tensor& x, std::int64_t n, const DimRef& dim, Site site) {
  return nth("nth_smallest", x, n, dim.in(x, site), true, site);
}

}  // namespace weft
