// top_k: the largest along a dim, descending, ties to the lower index. On a split dim every processor picks its own
// best, all are gathered, and everyone picks again: k elements per processor travel.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

constexpr const char* kLocal = "#k";

std::vector<TensorType> top_k_type(const OpCall& call) {
  const Dim dim = call.attr<Dim>("dim"), k = call.attr<Dim>("k");
  shape_rule::expect_dim(call, call.in(), dim);
  if (k.size > dim.size || call.in().has(k.name))
    throw UserError({.what = str("top_k of dim ", dim, " of ", call.in(), " into ", k),
                     .where = call.where(),
                     .fix = "k must be a new dim, no larger than the one it picks from"});
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
  const Axes& axes = l.axes_of(dim);
  Builder& b = l.builder;
  std::vector<ValueId> found = l.inputs;
  std::string from = dim;
  if (!axes.empty()) {
    const std::int64_t mine = std::min(k.size, b.value(l.inputs[0]).shape.size_of(dim));
    found = b.emit(TopK{dim, kLocal}, l.inputs, picked(l, l.inputs[0], dim, {kLocal, mine}, axes));
    for (ValueId& x : found) x = b.all_gather(x, kLocal, axes);
    from = kLocal;
  }
  found = b.emit(TopK{from, k.name}, found, picked(l, found[0], from, k, {}));
  for (ValueId& x : found) x = b.shard(x, k.name, l.axes_of(k.name));
  return found;
}

Tensors top_k_gradient(const Grad& g) {
  const Dim dim = g.attr<Dim>("dim");
  const Tensor dx = scatter_add(g.dy(0), g.y(1), dim, g.x().shape().minus({dim}), g.site());
  return {transpose(dx, g.x().shape(), g.site())};
}

const SampleInput kX{{{"a", 6}, {"b", 12}, {"c", 2}}, uniform(-1, 1), DType::kF32};

const OpDef& kTopK = define_op({
    .name = "top_k",
    .doc = "The k largest along a dim, descending, ties to the lower index, and their indices.",
    .shape = top_k_type,
    .sharding = sharding_rule::talks_along("dim"),
    .gradient = top_k_gradient,
    .lower = lower_top_k,
    .flops = [](const OpCall& call) { return static_cast<double>(call.in().elements()); },
    .samples = {{{kX},
                 [](Graph&, const Tensors& x) {
                   const TopKResult r = top_k(x[0], {"b", 12}, {"k", 4});
                   return Tensors{r.values, r.indices};
                 }},
                {{{kX.shape, whole(-2, 2), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{top_k(x[0], {"b", 12}, {"k", 4}).indices};
                 }},
                {{kX},
                 [](Graph&, const Tensors& x) {
                   return Tensors{argmax(x[0], {"a", 6})};
                 }}},
});

}  // namespace

TopKResult top_k(const Tensor& x, const Dim& dim, const Dim& k, Site site) {
  const Tensors results = apply_all(kTopK, {x}, {{"dim", dim}, {"k", k}}, site);
  return {results[0], results[1]};
}

Tensor argmax(const Tensor& x, const Dim& dim, Site site) {
  return reshape(top_k(x, dim, {"#best", 1}, site).indices, x.shape().minus({dim}), site);
}

}  // namespace weft
