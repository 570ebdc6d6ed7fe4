// The common part of all optimizers: choice of the trained variables, rules, clipping, decay.
#include <algorithm>
#include <cmath>
#include <limits>

#include "optim/common.h"
#include "weft/error.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::optim {

namespace {

void check(const Rules& rules, const Tensors& variables, Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  for (const Rule& rule : rules) {
    matching(variables, rule.pattern, site);
    check_option("optimizer.bad-rule-rate", "rate_scale of the rule '" + rule.pattern + "'", rule.rate_scale, 0,
                 endless, site);
    if (rule.weight_decay)
      check_option("optimizer.bad-rule-decay", "weight_decay of the rule '" + rule.pattern + "'", *rule.weight_decay, 0,
                   endless, site);
  }
}

Rule rule_of(const Tensor& variable, const Rules& rules, Site site) {
  for (const Rule& rule : rules)
    if (found(rule.pattern, plain_name(variable), site)) return rule;
  return {};
}

Tensor norm_of(const Tensors& gradients, Site site) {
  Tensors squares;
  for (const Tensor& gradient : gradients)
    squares.push_back(reduce_sum(square(cast(gradient, DType::kF32, site), site), site));
  return sqrt(add_n(squares, site), site);
}

}  // namespace

Feeds Optimizer::feeds(std::int64_t step, double rate, Site site) const {
  if (step < 1)
    throw UserError({.code = "optimizer.bad-step",
                     .what = "an optimizer is fed for step " + std::to_string(step),
                     .where = site,
                     .fix = "count the steps from 1"});
  if (!std::isfinite(rate))
    throw UserError({.code = "optimizer.bad-rate",
                     .what = "the rate of step " + std::to_string(step) + " is " + text(rate),
                     .where = site,
                     .fix = "give a finite learning rate; the schedule may divide by zero"});
  Feeds feeds = scalars(step, rate, site);
  for (const auto& [factor, input] : decays_) feeds.emplace_back(input, Array::scalar(rate * factor, DType::kF64));
  return feeds;
}

std::vector<Optimizer::Weight> Optimizer::prepare(const Tensor& loss, const Tensors& variables, const Common& common,
                                                  Site site) {
  const double endless = std::numeric_limits<double>::infinity();
  std::string title = common.name;
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  check_option("optimizer.bad-clip-norm", "clip_norm of " + title, common.clip_norm, 0, endless, site);
  check_option("optimizer.bad-weight-decay", "weight_decay of " + title, common.weight_decay, 0, endless, site);
  check(common.rules, variables, site);
  Tensors trained;
  for (const Tensor& variable : variables)
    if (rule_of(variable, common.rules, site).train) trained.push_back(variable);
  const Tensors derivatives = derivatives_of(loss, trained, site);

  const UpdatePhase phase(loss);
  const Graph g(loss.graph());
  std::vector<Weight> weights;
  for (std::size_t i = 0; i < trained.size(); ++i) {
    const Rule rule = rule_of(trained[i], common.rules, site);
    const std::string name = plain_name(trained[i]);
    const bool excluded = std::any_of(common.no_decay.begin(), common.no_decay.end(),
                                      [&](const std::string& pattern) { return found(pattern, name, site); });
    const double decay = rule.weight_decay.value_or(excluded ? 0 : common.weight_decay);
    const Tensor decay_by = decay_input(g, common, rule.rate_scale * decay, site);
    weights.push_back({trained[i], derivatives[i], rule.rate_scale, decay_by});
  }
  if (weights.empty()) return weights;
  norm_ = norm_of(derivatives, site);
  if (common.clip_norm == 0) return weights;
  const Tensor limit = constant(g, common.clip_norm, {}, DType::kF32, site);
  clip_ = divide(limit, maximum(norm_, limit, site), site);
  return weights;
}

Tensor Optimizer::gradient(const Weight& weight, Site site) const {
  const Tensor wide = cast(weight.derivative, DType::kF32, site);
  return clip_ ? multiply(wide, clip_, site) : wide;
}

void Optimizer::apply(const Weight& weight, Tensor step, Site site) {
  if (weight.decay) step = add(step, multiply(cast(weight.variable, DType::kF32, site), weight.decay, site), site);
  updates_.push_back(assign_sub(weight.variable, step, site));
}

// One input for each factor; none for 0.
Tensor Optimizer::decay_input(const Graph& g, const Common& common, double factor, Site site) {
  if (factor == 0) return {};
  for (const auto& [known, input] : decays_)
    if (known == factor) return input;
  const std::string number = decays_.empty() ? "" : "_" + std::to_string(decays_.size());
  Graph graph = g;
  decays_.emplace_back(factor, graph.input(common.name + "/decay" + number, {}, DType::kF32, site));
  return decays_.back().second;
}

}  // namespace weft::optim
