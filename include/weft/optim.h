// Optimizers add their ops to the graph, on global shapes, and return the updates. State is kept in f32 variables named
// after the weight: "<weight>.m", ".v", ".vr", ".vc". See docs/optimizers.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph.h"
#include "weft/session.h"

namespace weft::optim {

// w -= rate * g, for every variable. UserError for a loss that is not a scalar, and for a variable that the loss does
// not depend on: leave it out of `variables`, or declare it with VariableOptions::trainable = false.
Updates sgd(const Tensor& loss, const Tensors& variables, double rate, Site site = Site::current());
// The rate is a scalar input of the graph, given at each run.
Updates sgd(const Tensor& loss, const Tensors& variables, const Tensor& rate, Site site = Site::current());

// Selects the variables in whose name, written with '_' for '.', the regular expression is found. UserError if
// there is none.
Tensors matching(const Tensors& variables, const std::string& pattern, Site site = Site::current());

// How some variables are trained: the variables in whose name, written with '_' for '.', the regular expression is
// found.
struct Rule {
  std::string pattern;
  double rate_scale = 1;                    // factor of the learning rate, and so of the decay
  std::optional<double> weight_decay = {};  // in place of the optimizer's
  bool train = true;  // false: the variable does not change, has no state and does not count in the norm
};
// The first rule whose pattern is found in a variable's name applies; UserError for a pattern that is found in no name.
using Rules = std::vector<Rule>;

// The base of the optimizers. The constructor makes the ops, for every variable that no rule freezes; UserError like
// sgd() above. The numbers that change with the step are scalar inputs, computed in double on the host: pass
// feeds(step, rate) to run().
//
// All optimizers have the options clip_norm (0: no clipping), weight_decay (also w -= rate decay w) and rules.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  const Updates& updates() const { return updates_; }
  // The inputs of step 1, 2, …. UserError for a step below 1 or a rate that is not finite.
  Feeds feeds(std::int64_t step, double rate, Site site = Site::current()) const;
  // The root of the sum of the squares of all gradients, before clipping: f32, over all processors under every layout,
  // computed only if fetched or needed. With clip_norm c all gradients are multiplied by c / max(norm, c).
  const Tensor& gradient_norm() const { return norm_; }

 protected:
  // A variable to train, and the effect of the rules on it.
  struct Weight {
    Tensor variable, derivative;
    double rate_scale = 1;
    Tensor decay = {};  // an input, rate · scale · decay; empty: none
  };
  struct Common {
    std::string name;  // of the optimizer: its inputs are named "name/…"
    double clip_norm, weight_decay;
    const Rules& rules;
    std::vector<std::string> no_decay = {};  // patterns of names to which `weight_decay` does not apply
  };

  Optimizer() = default;
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  virtual Feeds scalars(std::int64_t step, double rate, Site site) const = 0;

  // The gradients, after the common options.
  std::vector<Weight> prepare(const Tensor& loss, const Tensors& variables, const Common& common, Site site);
  // A weight's gradient in f32, clipped.
  Tensor gradient(const Weight& weight, Site site) const;
  // Updates a weight: w -= step, and its decay.
  void apply(const Weight& weight, Tensor step, Site site);

  Updates updates_;

 private:
  Tensor decay_input(const Graph& g, const Common& common, double factor, Site site);

  Tensor norm_, clip_;                             // clip: the factor of all gradients; empty: none
  std::vector<std::pair<double, Tensor>> decays_;  // a factor of the rate, and its input
};

struct SgdOptions {
  double weight_decay = 0, clip_norm = 0;
  Rules rules = {};
};

// w -= rate g.
class Sgd : public Optimizer {
 public:
  Sgd(const Tensor& loss, const Tensors& variables, const SgdOptions& options = {}, Site site = Site::current());

 private:
  Feeds scalars(std::int64_t step, double rate, Site site) const override;

  Tensor rate_;
};

struct MomentumOptions {
  double momentum = 0.9;
  double weight_decay = 0, clip_norm = 0;
  Rules rules = {};
};

// v = rate g + momentum v; w -= v (the new v).
class Momentum : public Optimizer {
 public:
  Momentum(const Tensor& loss, const Tensors& variables, const MomentumOptions& options = {},
           Site site = Site::current());

 private:
  Feeds scalars(std::int64_t step, double rate, Site site) const override;

  Tensor rate_;
};

struct AdamOptions {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6, weight_decay = 0;
  bool bias_correction = true;  // false: like Mesh-TensorFlow's AdamWeightDecay
  // Regular expressions; a variable does not decay if one of them is found in its name, written with '_' for '.'.
  std::vector<std::string> exclude_from_weight_decay = {};
  double clip_norm = 0;
  Rules rules = {};
};

// m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2; w -= rate/(1-b1^t) * m / (sqrt(v / (1-b2^t)) + epsilon) + rate decay w.
class Adam : public Optimizer {
 public:
  Adam(const Tensor& loss, const Tensors& variables, const AdamOptions& options = {}, Site site = Site::current());

 private:
  Feeds scalars(std::int64_t step, double rate, Site site) const override;

  AdamOptions options_;
  Tensor rate_, second_scale_;
};

struct AdafactorOptions {
  bool multiply_by_parameter_scale = true;  // steps are relative to RMS(w)
  bool factored = true;                     // false: an unfactored v for every weight
  std::int64_t min_dim_size_to_factor = 128;
  std::optional<double> clipping_threshold = 1.0;              // of RMS(x); none: no clipping
  double beta1 = 0;                                            // 0: no first moment and no slot for it
  double decay_exponent = 0.8;                                 // rho = 1 - t^-exponent at step t = 1, 2, …
  std::optional<double> decay_beta2 = {};                      // instead: Adam's, rho = b (1 - b^(t-1)) / (1 - b^t)
  std::int64_t step_offset = 0;                                // rho counts steps from here: t = step - offset
  double epsilon1 = 1e-30, epsilon2 = 1e-3;                    // added to g^2; the least RMS(w)
  std::vector<std::string> exclude_from_parameter_scale = {};  // parts of names, written with '_' for '.'
  std::vector<std::string> stacked_dims = {"qkv"};  // dims of stacked weights: never factored nor averaged over
  double weight_decay = 0, clip_norm = 0;
  Rules rules = {};
};

// Adam's second moment from its means over the two largest dims (d0, d1), if both are large. With s = g^2 + epsilon1:
//   vr = rho vr + (1-rho) mean_d0(s); vc = rho vc + (1-rho) mean_d1(s); x = g / sqrt(vr / mean_d1(vr)) / sqrt(vc)
//   else v = rho v + (1-rho) s; x = g / sqrt(v)
//   u = rate * max(RMS(w), epsilon2) * x / max(1, RMS(x) / threshold); m = b1 m + (1-b1) u; w -= m
class Adafactor : public Optimizer {
 public:
  Adafactor(const Tensor& loss, const Tensors& variables, const AdafactorOptions& options = {},
            Site site = Site::current());

  // The usual rate: min(0.01, 1 / sqrt(step)), times 0.05 if steps are not relative to the scale of the parameters.
  double default_rate(std::int64_t step) const;

 private:
  Feeds scalars(std::int64_t step, double rate, Site site) const override;

  AdafactorOptions options_;
  Tensor rate_, kept_, fresh_;  // fresh = 1 - kept, computed separately: the difference would be lost in f32
};

// adamw is Adam, whose weight decay is always decoupled from the gradient, with this default decay.
inline constexpr double kAdamWDecay = 0.01;

// An optimizer by name, for configs: an option that is not set has the default of its kind.
struct OptimizerOptions {
  std::string name = "adafactor";           // or sgd, momentum, adam, adamw
  std::optional<double> weight_decay = {};  // default: 0; for adamw kAdamWDecay
  double clip_norm = 0;
  Rules rules = {};
  std::optional<double> momentum = {};
  std::optional<double> beta1 = {}, beta2 = {}, epsilon = {};  // beta1: also for adafactor
  std::optional<bool> bias_correction = {};
  std::optional<bool> multiply_by_parameter_scale = {}, factored = {};
  std::optional<std::int64_t> min_dim_size_to_factor = {}, step_offset = {};
  std::optional<double> clipping_threshold = {};  // 0: none
  std::optional<double> decay_exponent = {}, decay_beta2 = {}, epsilon1 = {}, epsilon2 = {};
  std::vector<std::string> exclude_from_weight_decay = {}, exclude_from_parameter_scale = {};
};

// UserError for an unknown name, and for an option that the named kind does not have.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& options, const Tensor& loss, const Tensors& variables,
                                          Site site = Site::current());

}  // namespace weft::optim
