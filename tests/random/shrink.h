// Cutting a failing recipe down: every change that leaves it failing in the same way is kept, until none is left.
#pragma once

#include <functional>

#include "build.h"

namespace weft::random_graphs {

using Fails = std::function<bool(const Recipe&)>;

// Without the steps that nothing stands on; references follow.
inline Recipe pruned(Recipe recipe) {
  std::vector<bool> needed(recipe.steps.size());
  visit_roots(recipe, [&](const Ref& ref) { needed[static_cast<std::size_t>(ref.step)] = true; });
  for (std::size_t i = recipe.steps.size(); i-- > 0;)
    if (needed[i])
      visit_refs(recipe.steps[i], [&](const Ref& ref) { needed[static_cast<std::size_t>(ref.step)] = true; });
  std::vector<int> moved(recipe.steps.size(), -1);
  std::vector<Step> kept;
  for (std::size_t i = 0; i < recipe.steps.size(); ++i) {
    if (!needed[i]) continue;
    moved[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(recipe.steps[i]));
  }
  const auto follow = [&](Ref& ref) { ref.step = moved[static_cast<std::size_t>(ref.step)]; };
  for (Step& step : kept) visit_refs(step, follow);
  visit_roots(recipe, follow);
  recipe.steps = std::move(kept);
  return recipe;
}

// The layout's rules as words, and back.
inline std::string joined(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

class Shrinker {
 public:
  Shrinker(Recipe recipe, Fails fails, int budget = 600)
      : best_(pruned(std::move(recipe))), fails_(std::move(fails)), budget_(budget) {}

  Recipe run() {
    for (bool changed = true; changed && budget_ > 0;) {
      changed = false;
      changed |= drop_ends();
      changed |= cut_steps();
      changed |= thin_layout();
    }
    return best_;
  }

 private:
  bool take(Recipe candidate) {
    if (budget_-- <= 0) return false;
    candidate = pruned(std::move(candidate));
    if (!fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  // One element of a list less, for every element.
  template <class List>
  bool drop_each(List Recipe::*list) {
    bool changed = false;
    for (std::size_t i = (best_.*list).size(); i-- > 0;) {
      Recipe candidate = best_;
      (candidate.*list).erase((candidate.*list).begin() + static_cast<std::ptrdiff_t>(i));
      changed |= take(std::move(candidate));
    }
    return changed;
  }

  bool drop_ends() {
    bool changed = false;
    if (best_.loss.step >= 0) {
      Recipe candidate = best_;
      candidate.loss = {};
      candidate.by.clear();
      candidate.trained.clear();
      Recipe fetched = candidate;
      fetched.outputs.push_back(best_.loss);
      changed |= take(std::move(candidate)) || take(std::move(fetched));
    }
    if (best_.second) {
      Recipe candidate = best_;
      candidate.second = false;
      changed |= take(std::move(candidate));
    }
    changed |= drop_each(&Recipe::changes);
    changed |= drop_each(&Recipe::trained);
    changed |= drop_each(&Recipe::metrics);
    changed |= drop_each(&Recipe::by);
    changed |= drop_each(&Recipe::outputs);
    if (!best_.metrics.empty()) {
      Recipe candidate = best_;
      candidate.outputs.insert(candidate.outputs.end(), best_.metrics.begin(), best_.metrics.end());
      candidate.metrics.clear();
      changed |= take(std::move(candidate));
    }
    for (std::size_t i = 0; i < best_.outputs.size(); ++i) changed |= fetch_operands(i);
    return changed;
  }

  // Instead of an output, what its step takes.
  bool fetch_operands(std::size_t output) {
    Recipe candidate = best_;
    Refs operands;
    visit_refs(candidate.steps[static_cast<std::size_t>(candidate.outputs[output].step)],
               [&](const Ref& ref) { operands.push_back(ref); });
    candidate.outputs.erase(candidate.outputs.begin() + static_cast<std::ptrdiff_t>(output));
    candidate.outputs.insert(candidate.outputs.end(), operands.begin(), operands.end());
    return !operands.empty() && take(std::move(candidate));
  }

  // Each step gives way to one of its operands of the same type, or to an input.
  bool cut_steps() {
    bool changed = false;
    for (int i = static_cast<int>(best_.steps.size()); i-- > 0;) {
      if (i >= static_cast<int>(best_.steps.size())) continue;
      changed |= give_way_to_operand(i) || give_way_to_input(i);
    }
    return changed;
  }

  bool give_way_to_operand(int i) {
    const Tensors values = build(best_).values;
    Refs operands;
    visit_refs(best_.steps[static_cast<std::size_t>(i)], [&](const Ref& ref) { operands.push_back(ref); });
    const Tensor& x = values[static_cast<std::size_t>(i)];
    for (const Ref& operand : operands) {
      const Tensor& y = values[static_cast<std::size_t>(operand.step)];
      if (y.shape() != x.shape() || y.dtype() != x.dtype()) continue;
      Recipe candidate = best_;
      const auto replace = [&](Ref& ref) {
        if (ref.step == i) ref = operand;
      };
      for (Step& step : candidate.steps) visit_refs(step, replace);
      visit_roots(candidate, replace);
      if (take(std::move(candidate))) return true;
    }
    return false;
  }

  bool give_way_to_input(int i) {
    const Step& step = best_.steps[static_cast<std::size_t>(i)];
    if (is_input(step) || is_variable(step)) return false;
    const Tensor x = build(best_).values[static_cast<std::size_t>(i)];
    const bool is_real = is_float(x.dtype()), truth = x.dtype() == DType::kBool;
    Recipe candidate = best_;
    candidate.steps[static_cast<std::size_t>(i)] = {
        "input",
        {"in" + std::to_string(serial_++), x.shape(), x.dtype(), is_real ? 0.5 : 0.0,
         is_real ? 1.5
         : truth ? 2.0
                 : 4.0,
         !is_real, std::int64_t{i}}};
    return take(std::move(candidate));
  }

  bool thin_layout() {
    bool changed = false;
    Recipe plain = best_;
    plain.store.clear();
    if (!best_.store.empty()) changed |= take(std::move(plain));
    const std::vector<LayoutRule> rules = Layout::parse(best_.layout).rules();
    for (std::size_t i = 0; i < rules.size(); ++i) changed |= with_rules(without_rule(i));
    for (const LayoutRule& rule : rules)
      for (const std::string& axis : rule.axes) changed |= with_rules(without_axis(rule.dim, axis));
    const Mesh mesh = Mesh::parse(best_.mesh);
    for (const Axis& axis : mesh.axes()) {
      std::vector<std::string> left;
      const Mesh now = Mesh::parse(best_.mesh);
      for (const Axis& other : now.axes())
        if (other.name != axis.name) left.push_back(other.name + ":" + std::to_string(other.size));
      Recipe candidate = best_;
      candidate.mesh = joined(left, " ");
      if (best_.layout.find(":" + axis.name) == std::string::npos &&
          best_.layout.find("+" + axis.name) == std::string::npos && !left.empty())
        changed |= take(std::move(candidate));
    }
    return changed;
  }

  std::vector<LayoutRule> without_rule(std::size_t i) const {
    std::vector<LayoutRule> rules = Layout::parse(best_.layout).rules();
    if (i < rules.size()) rules.erase(rules.begin() + static_cast<std::ptrdiff_t>(i));
    return rules;
  }
  std::vector<LayoutRule> without_axis(const std::string& dim, const std::string& axis) const {
    std::vector<LayoutRule> rules = Layout::parse(best_.layout).rules();
    for (LayoutRule& rule : rules)
      if (rule.dim == dim && rule.axes.size() > 1) std::erase(rule.axes, axis);
    return rules;
  }
  bool with_rules(const std::vector<LayoutRule>& rules) {
    std::vector<std::string> words;
    for (const LayoutRule& rule : rules) words.push_back(rule.dim + ":" + joined(rule.axes, "+"));
    Recipe candidate = best_;
    candidate.layout = joined(words, " ");
    return candidate.layout != best_.layout && take(std::move(candidate));
  }

  Recipe best_;
  Fails fails_;
  int budget_;
  int serial_ = 0;
};

}  // namespace weft::random_graphs
