#include <cmath>
#include <limits>

#include "optim/common.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

void check(const AdamOptions& options, Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  check_option("adam.bad-beta1", "beta1 of Adam", options.beta1, 0, 1, site);
  check_option("adam.bad-beta2", "beta2 of Adam", options.beta2, 0, 1, site);
  check_option("adam.bad-epsilon", "epsilon of Adam", options.epsilon, 0, endless, site);
}

}  // namespace

Adam::Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options, Site site) : options_(options) {
  check(options, site);
  const Common common{"adam", options.clip_norm, options.weight_decay, options.rules,
                      options.exclude_from_weight_decay};
  const std::vector<Weight> weights = prepare(loss, variables, common, site);
  const UpdatePhase phase(loss);
  Graph g(loss.graph());
  rate_ = g.input("adam/rate", {}, DType::kF32, site);
  second_scale_ = g.input("adam/second_scale", {}, DType::kF32, site);
  for (const Weight& weight : weights) {
    const Tensor w = weight.variable, dw = gradient(weight, site);
    const Tensor m = slot(w, "m", w.shape(), site), v = slot(w, "v", w.shape(), site);
    const Tensor new_m = blended(m, dw, options.beta1, site);
    const Tensor new_v = blended(v, square(dw, site), options.beta2, site);
    const Tensor root = sqrt(multiply(new_v, second_scale_, site), site);
    const Tensor direction = divide(new_m, add(root, options.epsilon, site), site);
    updates_.push_back(assign(m, new_m, site));
    updates_.push_back(assign(v, new_v, site));
    apply(weight, multiply(direction, scaled(rate_, weight.rate_scale, site), site), site);
  }
}

Feeds Adam::scalars(std::int64_t step, double rate, Site) const {
  const double t = static_cast<double>(step);
  const double first = options_.bias_correction ? 1 - std::pow(options_.beta1, t) : 1;
  const double second = options_.bias_correction ? 1 - std::pow(options_.beta2, t) : 1;
  return {{rate_, Array::scalar(rate / first, DType::kF64)}, {second_scale_, Array::scalar(1 / second, DType::kF64)}};
}

}  // namespace weft::optim
