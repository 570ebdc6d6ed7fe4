// Norms along one dim, computed in f32 if x is narrower. Their backward passes need x, the mean and the inverse deviation:
// nothing else is kept.
#include "nn/seen.h"

namespace weft::nn {

namespace {

Tensor wide(const Tensor& x, Site site) {
  return x.dtype() == DType::kBF16 || x.dtype() == DType::kF16 ? cast(x, DType::kF32, site) : x;
}

// Scales and biases are small, and seen in the dtype that the norm computes in.
VariableOptions seen_wide(const Tensor& x, const VariableOptions& options) {
  VariableOptions as = seen_as(x, options);
  if (x.dtype() == DType::kBF16 || x.dtype() == DType::kF16) as.activation = DType::kF32;
  return as;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const DimRef& along, const LayerNormOptions& options, Site site) {
  const Dim dim = along.in(x, site);
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const VariableOptions as_x = seen_wide(x, options.variables);
  Tensors inputs{x, g.variable("scale", {dim}, init::ones(), as_x, site)};
  if (options.bias) inputs.push_back(g.variable("bias", {dim}, init::zeros(), as_x, site));
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor wide_x = wide(in[0], site), middle = mean(wide_x, {dim}, site);
    const Tensor centred = subtract(wide_x, middle, site);
    const Tensor variance = mean(square(centred, site), {dim}, site);
    const Tensor inverse = rsqrt(add(variance, options.epsilon, site), site);
    const Tensor scaled = multiply(multiply(centred, inverse, site), in[1], site);
    return {cast(options.bias ? add(scaled, in[2], site) : scaled, x.dtype(), site), middle, inverse};
  };
  const auto backward = [dim, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor &middle = out[1], &inverse = out[2], dy = wide(dys[0], site);
    const Tensor normed = multiply(subtract(wide(in[0], site), middle, site), inverse, site);
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest =
        subtract(subtract(by_normed, mean(by_normed, {dim}, site), site), multiply(normed, along, site), site);
    Tensors by = {cast(multiply(rest, inverse, site), in[0].dtype(), site),
                  reduce_sum_to(multiply(dy, normed, site), {dim}, site)};
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
  const Tensor scale = g.variable("scale", scales, init::ones(), seen_wide(x, options.variables), site);
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor wide_x = wide(in[0], site);
    const Tensor inverse = rsqrt(add(mean(square(wide_x, site), {dim}, site), options.epsilon, site), site);
    return {cast(multiply(multiply(wide_x, inverse, site), in[1], site), x.dtype(), site), inverse};
  };
  const auto backward = [dim, scales, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor &inverse = out[1], dy = wide(dys[0], site);
    const Tensor normed = multiply(wide(in[0], site), inverse, site);
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest = subtract(by_normed, multiply(normed, along, site), site);
    return {cast(multiply(rest, inverse, site), in[0].dtype(), site),
            reduce_sum_to(multiply(dy, normed, site), scales, site)};
  };
  return custom_gradient({x, scale}, forward, backward, site)[0];
}

}  // namespace weft::nn
