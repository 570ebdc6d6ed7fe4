#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "optim/common.h"
#include "weft/error.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

void check(const AdafactorOptions& options, Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  const double smallest = 1e-37;  // representable in f32; 1 / sqrt(0) times a gradient of 0 would be NaN
  check_option("adafactor.bad-min-dim-size-to-factor", "min_dim_size_to_factor of Adafactor",
               static_cast<double>(options.min_dim_size_to_factor), 1, endless, site);
  if (options.clipping_threshold)
    check_option("adafactor.bad-clipping-threshold", "clipping_threshold of Adafactor", *options.clipping_threshold,
                 smallest, endless, site);
  check_option("adafactor.bad-beta1", "beta1 of Adafactor", options.beta1, 0, 1, site);
  check_option("adafactor.bad-decay-exponent", "decay_exponent of Adafactor", options.decay_exponent, smallest, endless,
               site);
  if (options.decay_beta2)
    check_option("adafactor.bad-decay-beta2", "decay_beta2 of Adafactor", *options.decay_beta2, 0, 1, site);
  check_option("adafactor.bad-epsilon1", "epsilon1 of Adafactor", options.epsilon1, smallest, endless, site);
  check_option("adafactor.bad-epsilon2", "epsilon2 of Adafactor", options.epsilon2, 0, endless, site);
}

// The dims of one weight: all dims except the stacked dims.
Shape own_dims(const Shape& shape, const AdafactorOptions& options) {
  std::vector<Dim> own;
  for (const Dim& dim : shape)
    if (std::find(options.stacked_dims.begin(), options.stacked_dims.end(), dim.name) == options.stacked_dims.end())
      own.push_back(dim);
  return own;
}

// The largest and the second largest dim, if the moment is factored; of equal dims the earlier counts as larger.
std::optional<std::pair<Dim, Dim>> factored_dims(const Shape& shape, const AdafactorOptions& options) {
  std::vector<Dim> dims = own_dims(shape, options).dims();
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) { return a.size > b.size; });
  if (!options.factored || dims.size() < 2 || dims[1].size < options.min_dim_size_to_factor) return {};
  return std::pair(dims[0], dims[1]);
}

// Over one weight: a stacked dim is kept.
Tensor root_mean_square(const Tensor& x, const AdafactorOptions& options, Site site) {
  return sqrt(mean(square(x, site), own_dims(x.shape(), options), site), site);
}

bool scales(const AdafactorOptions& options, const Tensor& variable) {
  const std::string name = plain_name(variable);
  for (const std::string& piece : options.exclude_from_parameter_scale)
    if (name.find(piece) != std::string::npos) return false;
  return options.multiply_by_parameter_scale;
}

// Makes the ops of the weights, one weight at a time.
struct Maker {
  const AdafactorOptions& options;
  const Tensor &rate, &kept, &fresh;
  Site site;
  Updates& updates;

  // The value that is subtracted from w.
  Tensor step(const Tensor& w, const Tensor& gradient, double rate_scale) const {
    const Tensor x = direction(w, gradient);
    Tensor step = multiply(x, scale(w, x, scaled(rate, rate_scale, site)), site);
    if (options.beta1 != 0) {
      const Tensor m = slot(w, "m", w.shape(), site);
      step = blended(m, step, options.beta1, site);
      updates.push_back(assign(m, step, site));
    }
    return step;
  }

  // The gradient over the root of its second moment.
  Tensor direction(const Tensor& w, const Tensor& gradient) const {
    const Tensor squares = add(square(gradient, site), options.epsilon1, site);
    const auto dims = factored_dims(w.shape(), options);
    if (!dims) return multiply(gradient, rsqrt(moment(w, "v", {}, squares), site), site);
    const Shape d0{dims->first}, d1{dims->second};
    const Tensor vr = moment(w, "vr", d0, squares), vc = moment(w, "vc", d1, squares);
    const Tensor rows = rsqrt(divide(vr, mean(vr, d1, site), site), site);
    return multiply(multiply(gradient, rows, site), rsqrt(vc, site), site);
  }

  // The new value of the slot that tracks the squares, averaged over some dims.
  Tensor moment(const Tensor& w, const std::string& suffix, const Shape& averaged, const Tensor& squares) const {
    const Tensor old = slot(w, suffix, w.shape().minus(averaged), site);
    const Tensor now = averaged.empty() ? squares : mean(squares, averaged, site);
    const Tensor next = add(multiply(old, kept, site), multiply(now, fresh, site), site);
    updates.push_back(assign(old, next, site));
    return next;
  }

  // factor * max(RMS(w), epsilon2) / max(1, RMS(x) / threshold): a scalar, or one number for each weight of a stack.
  Tensor scale(const Tensor& w, const Tensor& x, Tensor factor) const {
    if (scales(options, w)) {
      const Tensor size = root_mean_square(cast(w, DType::kF32, site), options, site);
      factor = multiply(maximum(size, options.epsilon2, site), factor, site);
    }
    if (!options.clipping_threshold) return factor;
    const Tensor excess = multiply(root_mean_square(x, options, site), 1 / *options.clipping_threshold, site);
    return divide(factor, maximum(excess, 1.0, site), site);
  }
};

}  // namespace

Adafactor::Adafactor(const Tensor& loss, const Tensors& variables, const AdafactorOptions& options, Site site)
    : options_(options) {
  check(options, site);
  const std::vector<Weight> weights =
      prepare(loss, variables, {"adafactor", options.clip_norm, options.weight_decay, options.rules}, site);
  const UpdatePhase phase(loss);
  Graph g(loss.graph());
  rate_ = g.input("adafactor/rate", {}, DType::kF32, site);
  kept_ = g.input("adafactor/kept", {}, DType::kF32, site);
  fresh_ = g.input("adafactor/fresh", {}, DType::kF32, site);
  const Maker maker{options, rate_, kept_, fresh_, site, updates_};
  for (const Weight& weight : weights)
    apply(weight, maker.step(weight.variable, gradient(weight, site), weight.rate_scale), site);
}

double Adafactor::default_rate(std::int64_t step) const {
  const double rate = std::min(0.01, 1 / std::sqrt(static_cast<double>(step)));
  return options_.multiply_by_parameter_scale ? rate : 0.05 * rate;
}

Feeds Adafactor::scalars(std::int64_t step, double rate, Site site) const {
  const double t = static_cast<double>(step - options_.step_offset);
  if (t < 1)
    throw UserError({.code = "adafactor.step-before-offset",
                     .what = "Adafactor is fed for step " + std::to_string(step) + ", not after its step_offset " +
                             std::to_string(options_.step_offset),
                     .where = site,
                     .fix = "give the number of steps done before as step_offset, and feed later steps"});
  // 1 - rho for Adam's decay is (1 - b) / (1 - b^t).
  const double fresh = options_.decay_beta2 ? (1 - *options_.decay_beta2) / (1 - std::pow(*options_.decay_beta2, t))
                                            : std::pow(t, -options_.decay_exponent);
  return {{rate_, Array::scalar(rate, DType::kF64)},
          {kept_, Array::scalar(1 - fresh, DType::kF64)},
          {fresh_, Array::scalar(fresh, DType::kF64)}};
}

}  // namespace weft::optim
