// Norms along one dim. Their backward passes need only the normed x and the inverse deviation; nothing else is kept. All is
// computed in f32 if x is narrower; the normed x is kept as narrow as x.
#include "weft/nn.h"

namespace weft::nn {

namespace {

DType wide_dtype(const Tensor& x) {
  const bool narrow = x.dtype() == DType::kBF16 || x.dtype() == DType::kF16;
  return narrow ? DType::kF32 : x.dtype();
}

Tensor wide(const Tensor& x, Site site) { return cast(x, wide_dtype(x), site); }

VariableOptions seen_wide(const Tensor& x, VariableOptions options) {
  options.activation = wide_dtype(x);
  return options;
}

}  // namespace

Tensor layer_norm(const Tensor& x, const DimRef& along, const LayerNormOptions& options, Site site) {
  const Dim dim = along.in(x, site);
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const VariableOptions variables = seen_wide(x, options.variables);
  Tensors inputs{x, g.variable("scale", {dim}, init::ones(), variables, site)};
  if (options.bias) inputs.push_back(g.variable("bias", {dim}, init::zeros(), variables, site));
  const DType narrow = x.dtype();
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor all = wide(in[0], site), centred = subtract(all, mean(all, {dim}, site), site);
    const Tensor variance = mean(square(centred, site), {dim}, site);
    const Tensor inverse = rsqrt(add(variance, options.epsilon, site), site);
    const Tensor normed = multiply(centred, inverse, site);
    const Tensor scaled = multiply(normed, in[1], site);
    const Tensor y = options.bias ? add(scaled, in[2], site) : scaled;
    return {cast(y, narrow, site), cast(normed, narrow, site), inverse};
  };
  const auto backward = [dim, narrow, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor normed = wide(out[1], site), dy = wide(dys[0], site), &inverse = out[2];
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest =
        subtract(subtract(by_normed, mean(by_normed, {dim}, site), site), multiply(normed, along, site), site);
    Tensors by = {cast(multiply(rest, inverse, site), narrow, site), reduce_sum_to(multiply(dy, normed, site), {dim}, site)};
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
  const DType narrow = x.dtype();
  const auto forward = [&](const Tensors& in) -> Tensors {
    const Tensor all = wide(in[0], site);
    const Tensor inverse = rsqrt(add(mean(square(all, site), {dim}, site), options.epsilon, site), site);
    const Tensor normed = multiply(all, inverse, site);
    return {cast(multiply(normed, in[1], site), narrow, site), cast(normed, narrow, site), inverse};
  };
  const auto backward = [dim, scales, narrow, site](const Tensors& in, const Tensors& out, const Tensors& dys) -> Tensors {
    const Tensor normed = wide(out[1], site), dy = wide(dys[0], site), &inverse = out[2];
    const Tensor by_normed = multiply(dy, in[1], site);
    const Tensor along = mean(multiply(by_normed, normed, site), {dim}, site);
    const Tensor rest = subtract(by_normed, multiply(normed, along, site), site);
    return {cast(multiply(rest, inverse, site), narrow, site), reduce_sum_to(multiply(dy, normed, site), scales, site)};
  };
  return custom_gradient({x, scale}, forward, backward, site)[0];
}

}  // namespace weft::nn
