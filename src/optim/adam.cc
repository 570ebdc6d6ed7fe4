#include <cmath>

#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

// The slot of a variable: f32 state of its shape, called after it whatever scope is open.
Tensor slot(const Tensor& variable, const std::string& suffix, Site site) {
  Graph g(variable.graph());
  return g.variable("/" + variable_name(variable) + "." + suffix, variable.shape(), init::zeros(), {.trainable = false},
                    site);
}

// beta * old + (1 - beta) * now.
Tensor blended(const Tensor& old, const Tensor& now, double beta, Site site) {
  return add(multiply(old, beta, site), multiply(now, 1 - beta, site), site);
}

}  // namespace

Adam::Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options, Site site) : options_(options) {
  Graph g(loss.graph());
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  const UpdatePhase phase(loss);
  rate_ = g.input("adam/rate", {}, DType::kF32, site);
  second_scale_ = g.input("adam/second_scale", {}, DType::kF32, site);
  if (options.weight_decay != 0) decay_ = g.input("adam/decay", {}, DType::kF32, site);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!derivatives[i]) continue;
    const Tensor gradient = cast(derivatives[i], DType::kF32, site);
    const Tensor m = slot(variables[i], "m", site), v = slot(variables[i], "v", site);
    const Tensor new_m = blended(m, gradient, options.beta1, site);
    const Tensor new_v = blended(v, square(gradient, site), options.beta2, site);
    const Tensor root = sqrt(multiply(new_v, second_scale_, site), site);
    Tensor step = multiply(divide(new_m, add(root, options.epsilon, site), site), rate_, site);
    if (decay_) step = add(step, multiply(cast(variables[i], DType::kF32, site), decay_, site), site);
    updates_.push_back(assign(m, new_m, site));
    updates_.push_back(assign(v, new_v, site));
    updates_.push_back(assign_sub(variables[i], step, site));
  }
}

Feeds Adam::feeds(std::int64_t step, double rate) const {
  const double t = static_cast<double>(step);
  const double first = options_.bias_correction ? 1 - std::pow(options_.beta1, t) : 1;
  const double second = options_.bias_correction ? 1 - std::pow(options_.beta2, t) : 1;
  Feeds feeds{{rate_, Array::scalar(rate / first, DType::kF64)}, {second_scale_, Array::scalar(1 / second, DType::kF64)}};
  if (decay_) feeds.emplace_back(decay_, Array::scalar(rate * options_.weight_decay, DType::kF64));
  return feeds;
}

}  // namespace weft::optim
