// Norms along one dim. Their backward passes need only the normed x and the inverse deviation; nothing else is kept.
#include "nn/seen.h"

namespace weft::nn {

Tensor layer_norm(const Tensor& x, const DimRef& along, const LayerNormOptions& options, Site site) {
  const Dim dim = along.in(x, site);
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const VariableOptions as_x = seen_as(x, options.variables);
  Tensors inputs{x, g.variable("scale", {dim}, init::ones(), as_x, site)};
  if (options.bias) inputs.push_back(g.variable("bias", {dim}, init::zeros(), as_x, site));
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor centred = subtract(in[0], mean(in[0], {dim}, site), site);
    const Tensor variance = mean(square(centred, site), {dim}, site);
    const Tensor inverse = rsqrt(add(variance, options.epsilon, site), site);
    const Tensor normed = multiply(centred, inverse, site);
    const Tensor scaled = multiply(normed, in[1], site);
    return {options.bias ? add(scaled, in[2], site) : scaled, normed, inverse};
  };
  const auto backward = [dim, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor &normed = out[1], &inverse = out[2], &dy = dys[0];
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest =
        subtract(subtract(by_normed, mean(by_normed, {dim}, site), site), multiply(normed, along, site), site);
    Tensors by = {multiply(rest, inverse, site), reduce_sum_to(multiply(dy, normed, site), {dim}, site)};
    if (in.size() > 2) by.push_back(reduce_sum_to(dy, {dim}, site));
    return by;
  };
  return custom_gradient(inputs, forward, backward, site)[0];
}

Tensor rms_norm(const Tensor& x, const DimRef& along, const RmsNormOptions& options, Site site) {
  const Dim dim = along.in(x, site);
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Shape scales = options.one_scale ? Shape{} : Shape{dim};
  const Tensor scale = g.variable("scale", scales, init::ones(), seen_as(x, options.variables), site);
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor inverse = rsqrt(add(mean(square(in[0], site), {dim}, site), options.epsilon, site), site);
    const Tensor normed = multiply(in[0], inverse, site);
    return {multiply(normed, in[1], site), normed, inverse};
  };
  const auto backward = [dim, scales, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor &normed = out[1], &inverse = out[2], &dy = dys[0];
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest = subtract(by_normed, multiply(normed, along, site), site);
    return {multiply(rest, inverse, site), reduce_sum_to(multiply(dy, normed, site), scales, site)};
  };
  return custom_gradient({x, scale}, forward, backward, site)[0];
}

}  // namespace weft::nn
