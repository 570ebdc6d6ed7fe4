#include <algorithm>

#include "weft/error.h"
#include "weft/optim.h"
#include "weft/detail/words.h"

namespace weft::optim {

namespace {

const std::vector<std::string> kNames = {"sgd", "momentum", "adam", "adamw", "adafactor"};

// Copies the given options into the options of one kind, and knows which of them were not used.
class OptionSetter {
 public:
  template <class T, class U>
  void give(const char* option, const std::optional<T>& given, U& taken) {
    names_.push_back(option);
    if (given) taken = *given;
  }
  template <class T>
  void give(const char* option, const std::vector<T>& given, std::vector<T>& taken) {
    names_.push_back(option);
    taken = given;
  }

  // UserError if an option is given that this kind does not have.
  void check(const OptimizerOptions& o, Site site) const {
    const std::vector<std::pair<const char*, bool>> given = {
        {"momentum", o.momentum.has_value()},
        {"beta1", o.beta1.has_value()},
        {"beta2", o.beta2.has_value()},
        {"epsilon", o.epsilon.has_value()},
        {"bias_correction", o.bias_correction.has_value()},
        {"multiply_by_parameter_scale", o.multiply_by_parameter_scale.has_value()},
        {"factored", o.factored.has_value()},
        {"min_dim_size_to_factor", o.min_dim_size_to_factor.has_value()},
        {"step_offset", o.step_offset.has_value()},
        {"clipping_threshold", o.clipping_threshold.has_value()},
        {"decay_exponent", o.decay_exponent.has_value()},
        {"decay_beta2", o.decay_beta2.has_value()},
        {"epsilon1", o.epsilon1.has_value()},
        {"epsilon2", o.epsilon2.has_value()},
        {"exclude_from_weight_decay", !o.exclude_from_weight_decay.empty()},
        {"exclude_from_parameter_scale", !o.exclude_from_parameter_scale.empty()},
    };
    std::string list;
    for (const std::string& name : names_) list += name + ", ";
    for (const auto& [option, is_given] : given)
      if (is_given && std::find(names_.begin(), names_.end(), option) == names_.end())
        throw UserError({.code = "optimizer.unknown-option",
                         .what = "the optimizer " + o.name + " has no option " + option,
                         .where = std::string(option) + " at " + to_string(site),
                         .fix = "leave it out; its options are " + list + "weight_decay, clip_norm, rules"});
  }

 private:
  std::vector<std::string> names_;
};

template <class Kind, class Options>
std::unique_ptr<Optimizer> made(const OptimizerOptions& o, const OptionSetter& giver, Options options,
                                const Tensor& loss, const Tensors& variables, Site site) {
  giver.check(o, site);
  options.weight_decay = o.weight_decay.value_or(o.name == "adamw" ? kAdamWDecay : 0);
  options.clip_norm = o.clip_norm;
  options.rules = o.rules;
  return std::make_unique<Kind>(loss, variables, options, site);
}

std::unique_ptr<Optimizer> make_adam(const OptimizerOptions& o, const Tensor& loss, const Tensors& variables,
                                     Site site) {
  OptionSetter giver;
  AdamOptions options;
  giver.give("beta1", o.beta1, options.beta1);
  giver.give("beta2", o.beta2, options.beta2);
  giver.give("epsilon", o.epsilon, options.epsilon);
  giver.give("bias_correction", o.bias_correction, options.bias_correction);
  giver.give("exclude_from_weight_decay", o.exclude_from_weight_decay, options.exclude_from_weight_decay);
  return made<Adam>(o, giver, options, loss, variables, site);
}

std::unique_ptr<Optimizer> make_adafactor(const OptimizerOptions& o, const Tensor& loss, const Tensors& variables,
                                          Site site) {
  OptionSetter giver;
  AdafactorOptions options;
  giver.give("multiply_by_parameter_scale", o.multiply_by_parameter_scale, options.multiply_by_parameter_scale);
  giver.give("factored", o.factored, options.factored);
  giver.give("min_dim_size_to_factor", o.min_dim_size_to_factor, options.min_dim_size_to_factor);
  giver.give("clipping_threshold", o.clipping_threshold, options.clipping_threshold);
  if (o.clipping_threshold == 0) options.clipping_threshold = {};
  giver.give("beta1", o.beta1, options.beta1);
  giver.give("decay_exponent", o.decay_exponent, options.decay_exponent);
  giver.give("decay_beta2", o.decay_beta2, options.decay_beta2);
  giver.give("step_offset", o.step_offset, options.step_offset);
  giver.give("epsilon1", o.epsilon1, options.epsilon1);
  giver.give("epsilon2", o.epsilon2, options.epsilon2);
  giver.give("exclude_from_parameter_scale", o.exclude_from_parameter_scale, options.exclude_from_parameter_scale);
  return made<Adafactor>(o, giver, options, loss, variables, site);
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerOptions& o, const Tensor& loss, const Tensors& variables,
                                          Site site) {
  if (o.name == "sgd") return made<Sgd>(o, OptionSetter(), SgdOptions(), loss, variables, site);
  if (o.name == "momentum") {
    OptionSetter giver;
    MomentumOptions options;
    giver.give("momentum", o.momentum, options.momentum);
    return made<Momentum>(o, giver, options, loss, variables, site);
  }
  if (o.name == "adam" || o.name == "adamw") return make_adam(o, loss, variables, site);
  if (o.name == "adafactor") return make_adafactor(o, loss, variables, site);
  const std::string near = nearest_word(o.name, kNames);
  throw UserError({.code = "optimizer.unknown",
                   .what = "there is no optimizer '" + o.name + "'",
                   .where = site,
                   .fix = (near.empty() ? "" : "did you mean '" + near + "'? ") +
                          std::string("the optimizers are sgd, momentum, adam, adamw and adafactor")});
}

}  // namespace weft::optim
