// broadcast: the same elements with more dims, in any order. transpose is a broadcast that adds no dims.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

std::vector<TensorType> broadcast_type(const OpCall& call) {
  const Shape& shape = call.attr<Shape>("shape");
  for (const Dim& dim : call.in())
    if (!shape.has(dim))
      throw UserError({.code = "broadcast.missing-dim",
                       .what = str("cannot broadcast ", call.in(), " to ", shape, ": dim ", dim, " is missing there"),
                       .where = call.where(),
                       .fix = "give a shape with all dims of the tensor, with their sizes"});
  return {{shape, call.inputs[0].dtype}};
}

const OpDef& kBroadcast = define_op({
    .name = "broadcast",
    .doc = "The same numbers under more dims, in any order; new dims are copies.",
    .shape = broadcast_type,
    .sharding = sharding_rule::pointwise(),
    .gradient = [](const Grad& g) -> Tensors { return {reduce_sum_to(g.dy(), g.x().shape(), g.site())}; },
    .lower = lower_rule::map("identity"),
    .flops = flops_rule::none(),
    .samples = {{{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{broadcast(x[0], {{"c", 2}, {"b", 4}, {"a", 6}})};
                 }},
                {{{{{"a", 6}, {"b", 4}}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{transpose(x[0], {{"b", 4}, {"a", 6}})};
                 }},
                {{{{}, uniform(-1, 1), DType::kF32}},
                 [](Graph&, const Tensors& x) {
                   return Tensors{broadcast(x[0], {{"a", 12}})};
                 }}},
});

}  // namespace

Tensor broadcast(const Tensor& x, const Shape& shape, Site site) {
  if (x && x.shape() == shape) return x;
  return apply(kBroadcast, {x}, {{"shape", shape}}, site);
}

Tensor transpose(const Tensor& x, const DimRefs& dims, Site site) {
  const Shape order = dims.in(x, site);
  if (!same_dims(x.shape(), order))
    throw UserError({.code = "transpose.bad-order",
                     .what = str("cannot transpose ", x.shape(), " to ", order),
                     .where = str("transpose at ", to_string(site)),
                     .fix = "name the same dims in another order"});
  return broadcast(x, order, site);
}

}  // namespace weft
