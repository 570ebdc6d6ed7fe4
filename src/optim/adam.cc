#include <cmath>
#include <limits>

#include "optim/common.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

void check(const AdamOptions& options, Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  check_option("beta1 of Adam", options.beta1, 0, 1, site);
  check_option("beta2 of Adam", options.beta2, 0, 1, site);
  check_option("epsilon of Adam", options.epsilon, 0, endless, site);
  check_option("weight_decay of Adam", options.weight_decay, 0, endless, site);
}

bool decays(const AdamOptions& options, const Tensor& variable, Site site) {
  for (const std::string& pattern : options.exclude_from_weight_decay)
    if (found(pattern, plain_name(variable), site)) return false;
  return options.weight_decay != 0;
}

}  // namespace

Adam::Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options, Site site) : options_(options) {
  check(options, site);
  Graph g(loss.graph());
  const Tensors derivatives = gradients({loss}, variables, {}, site);
  const UpdatePhase phase(loss);
  rate_ = g.input("adam/rate", {}, DType::kF32, site);
  second_scale_ = g.input("adam/second_scale", {}, DType::kF32, site);
  if (options.weight_decay != 0) decay_ = g.input("adam/decay", {}, DType::kF32, site);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (!derivatives[i]) continue;
    const Tensor& w = variables[i];
    const Tensor gradient = cast(derivatives[i], DType::kF32, site);
    const Tensor m = slot(w, "m", w.shape(), site), v = slot(w, "v", w.shape(), site);
    const Tensor new_m = blended(m, gradient, options.beta1, site);
    const Tensor new_v = blended(v, square(gradient, site), options.beta2, site);
    const Tensor root = sqrt(multiply(new_v, second_scale_, site), site);
    Tensor step = multiply(divide(new_m, add(root, options.epsilon, site), site), rate_, site);
    if (decays(options, w, site)) step = add(step, multiply(cast(w, DType::kF32, site), decay_, site), site);
    updates_.push_back(assign(m, new_m, site));
    updates_.push_back(assign(v, new_v, site));
    updates_.push_back(assign_sub(w, step, site));
  }
}

Feeds Adam::scalars(std::int64_t step, double rate, Site) const {
  const double t = static_cast<double>(step);
  const double first = options_.bias_correction ? 1 - std::pow(options_.beta1, t) : 1;
  const double second = options_.bias_correction ? 1 - std::pow(options_.beta2, t) : 1;
  Feeds feeds{{rate_, Array::scalar(rate / first, DType::kF64)},
              {second_scale_, Array::scalar(1 / second, DType::kF64)}};
  if (decay_) feeds.emplace_back(decay_, Array::scalar(rate * options_.weight_decay, DType::kF64));
  return feeds;
}

}  // namespace weft::optim
