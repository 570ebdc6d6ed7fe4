#include "weft/nn.h"

namespace weft::nn {

BatchNormResult batch_norm(const Tensor& x, const DimRefs& dims, const BatchNormOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Shape joined = dims.in(x, site), rest = x.shape().minus(joined);
  // Narrow floats are widened: a moving mean in bf16 would hardly move.
  const bool narrow = x.dtype() == DType::kBF16 || x.dtype() == DType::kF16;
  const Tensor wide = narrow ? cast(x, DType::kF32, site) : x;
  const VariableOptions trained{.activation = wide.dtype()}, moves{.activation = wide.dtype(), .trainable = false};
  const Tensor scale = g.variable("scale", rest, init::ones(), trained, site);
  const Tensor bias = g.variable("bias", rest, init::zeros(), trained, site);
  const Tensor moving_mean = g.variable("moving_mean", rest, init::zeros(), moves, site);
  const Tensor moving_variance = g.variable("moving_variance", rest, init::ones(), moves, site);

  const Tensor centre = options.training ? mean(wide, joined, site) : moving_mean;
  const Tensor centred = subtract(wide, centre, site);
  const Tensor variance = options.training ? mean(square(centred, site), joined, site) : moving_variance;
  const Tensor normed = multiply(centred, rsqrt(add(variance, options.epsilon, site), site), site);
  const Tensor y = add(multiply(normed, scale, site), bias, site);
  BatchNormResult result{narrow ? cast(y, x.dtype(), site) : y, {}};
  if (!options.training) return result;
  const auto moved = [&](const Tensor& old, const Tensor& now) {
    const Tensor difference = multiply(subtract(now, old, site), 1 - options.momentum, site);
    return assign_add(old, difference, site);
  };
  result.updates = {moved(moving_mean, centre), moved(moving_variance, variance)};
  return result;
}

Tensor embedding(const Tensor& ids, const Dim& vocab, const Dim& model, const std::string& name, const Init& init,
                 Site site) {
  const Tensor table = Graph(ids.graph()).variable(name, {vocab, model}, init, {}, site);
  return gather(table, ids, vocab, site);
}

}  // namespace weft::nn
