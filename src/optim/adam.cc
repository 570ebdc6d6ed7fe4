#include <cmath>

#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

// The slot of a variable: state of its shape, in f32, beside it by name.
Tensor slot(const Tensor& variable, const std::string& suffix, Site site) {
  Graph g(variable.graph());
  return g.variable(variable_name(variable) + "." + suffix, variable.shape(), init::zeros(), {.trainable = false}, site);
}

}  // namespace

Adam::Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options, Site site) : options_(options) {
  Graph g(loss.graph());
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  const UpdatePhase phase(loss);
  rate_ = g.input("adam/rate", {}, DType::kF32, site);
  second_scale_ = g.input("adam/second_scale", {}, DType::kF32, site);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!derivatives[i]) continue;
    const Tensor gradient = cast(derivatives[i], DType::kF32, site);
    const Tensor m = slot(variables[i], "m", site), v = slot(variables[i], "v", site);
    const Tensor new_m = m * options.beta1 + gradient * (1 - options.beta1);
    const Tensor new_v = v * options.beta2 + square(gradient, site) * (1 - options.beta2);
    Tensor step = new_m / (sqrt(new_v * second_scale_, site) + options.epsilon);
    if (options.weight_decay != 0) step = step + cast(variables[i], DType::kF32, site) * options.weight_decay;
    updates_.push_back(assign(m, new_m, site));
    updates_.push_back(assign(v, new_v, site));
    updates_.push_back(assign_sub(variables[i], step * rate_, site));
  }
}

Feeds Adam::feeds(std::int64_t step, double rate) const {
  const double t = static_cast<double>(step);
  const double first = options_.bias_correction ? 1 - std::pow(options_.beta1, t) : 1;
  const double second = options_.bias_correction ? 1 - std::pow(options_.beta2, t) : 1;
  return {{rate_, Array::scalar(rate / first, DType::kF64)}, {second_scale_, Array::scalar(1 / second, DType::kF64)}};
}

}  // namespace weft::optim
