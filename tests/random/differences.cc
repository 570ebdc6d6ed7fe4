#include "differences.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/str.h"
#include "judge/judge.h"

namespace weft::random_graphs {

namespace {

std::map<std::string, judge::Value> judged_inputs(const Built& built, const judge::Arithmetic& how) {
  std::map<std::string, judge::Value> inputs;
  for (const auto& [tensor, array] : built.feeds) inputs[tensor.name()] = judge::value_of(array, tensor.dtype(), how);
  return inputs;
}

// The variables that a run has.
std::set<std::string> used_variables(const Built& built) {
  std::set<std::string> names;
  for (const Node& node : needed_part(built).nodes)
    if (node.op->name == "variable") names.insert(node.attrs.get<std::string>("name"));
  return names;
}

}  // namespace

Wanted judged(const Built& built, const judge::Arithmetic& how) {
  judge::Judge judge(built.graph, {how, kSeed});
  const std::map<std::string, judge::Value> inputs = judged_inputs(built, how);
  std::vector<TensorId> ids;
  for (const Tensors* tensors : {&built.fetch, &built.update})
    for (const Tensor& x : *tensors) ids.push_back(x.id());
  const GraphData& graph = *built.graph.data();
  ids.insert(ids.end(), graph.metrics.begin(), graph.metrics.end());
  Wanted want;
  for (int run = 0; run < kRuns; ++run) {
    const std::vector<judge::ValuePtr> values = judge.run(inputs, ids);
    const std::string at = " of run " + std::to_string(run);
    for (std::size_t i = 0; i < built.fetch.size(); ++i)
      want.emplace_back("output " + std::to_string(i) + " '" + built.fetch[i].name() + "'" + at, *values[i]);
    std::map<std::string, judge::Value> metrics;
    for (std::size_t i = 0; i < graph.metrics.size(); ++i)
      metrics[graph.node(graph.metrics[i]).attrs.get<std::string>("text")] =
          *values[built.fetch.size() + built.update.size() + i];
    for (const auto& [name, value] : metrics) want.emplace_back("metric " + name + at, value);
  }
  for (const std::string& name : used_variables(built)) want.emplace_back("variable " + name, judge.variables.at(name));
  return want;
}

bool has_own_derivatives(const Recipe& recipe) {
  static const std::set<std::string> kOwn = {"custom_square", "custom_product", "clip_activation_gradient"};
  return std::any_of(recipe.steps.begin(), recipe.steps.end(),
                     [](const Step& step) { return kOwn.contains(step.function); });
}

namespace {

// A function along one line: all tensors that it is differentiated by move at once, each in a random direction.
class AlongALine {
 public:
  AlongALine(const Built& built, const Differentiated& d) : built_(built), d_(d), judge_(built.graph, {{true}, kSeed}) {
    start_ = judge_.variables;
    inputs_ = judged_inputs(built, {true});
    for (std::size_t i = 0; i < d.by.size(); ++i)
      directions_.push_back(filled(d.by[i].shape(), DType::kF64, -1, 1, false, 977 + static_cast<std::int64_t>(i)));
  }

  // The derivative along the line by the graph's own derivatives, and the sum of its terms' absolute values.
  std::pair<double, double> predicted() {
    std::vector<TensorId> ids;
    std::vector<std::size_t> which;
    for (std::size_t i = 0; i < d_.derivatives.size(); ++i)
      if (d_.derivatives[i]) {
        ids.push_back(d_.derivatives[i].id());
        which.push_back(i);
      }
    judge_.step = 0;
    const std::vector<judge::ValuePtr> values = judge_.run(inputs_, ids);
    double sum = 0, size = 0;
    for (std::size_t i = 0; i < ids.size(); ++i)
      for (std::size_t k = 0; k < values[i]->size(); ++k) {
        const double term = values[i]->f[k] * directions_[which[i]].at(static_cast<std::int64_t>(k));
        sum += term;
        size += std::fabs(term);
      }
    return {sum, size};
  }

  // Values behind stop_gradient() stay as they are at 0, which has to be asked for first.
  double at(double h) {
    std::map<std::string, judge::Value> inputs = inputs_;
    judge_.variables = start_;
    const GraphData& graph = *built_.graph.data();
    for (std::size_t i = 0; i < d_.by.size(); ++i) {
      const bool is_variable(variable_of(graph, d_.by[i].id()));
      judge::Value& x = is_variable ? judge_.variables.at(variable_name(d_.by[i])) : inputs.at(d_.by[i].name());
      for (std::size_t k = 0; k < x.size(); ++k) x.f[k] += h * directions_[i].at(static_cast<std::int64_t>(k));
    }
    judge_.step = 0;
    judge_.recorded = h == 0 ? &stops_ : nullptr;
    judge_.replayed = h == 0 ? nullptr : &stops_;
    const double y = judge_.run(inputs, {d_.y.id()})[0]->f[0];
    judge_.recorded = nullptr;
    judge_.replayed = nullptr;
    judge_.variables = start_;
    return y;
  }

 private:
  const Built& built_;
  const Differentiated& d_;
  judge::Judge judge_;
  std::map<std::string, judge::Value> start_, inputs_;
  std::vector<Array> directions_;
  std::vector<judge::ValuePtr> stops_;
};

}  // namespace

SlopeCheck check_slopes(const Built& built) {
  SlopeCheck result;
  for (const Differentiated& d : built.differentiated) {
    if (d.by.empty()) continue;
    AlongALine line(built, d);
    constexpr double kStep = 1e-5;
    const double y = line.at(0), up = line.at(kStep), down = line.at(-kStep);
    const double slope = (up - down) / (2 * kStep), half = (line.at(kStep / 2) - line.at(-kStep / 2)) / kStep;
    const auto [predicted, size] = line.predicted();
    const double scale = std::max({std::fabs(slope), size, 1e-3 * (1 + std::fabs(y))});
    const double sides = std::fabs((up - y) / kStep - (y - down) / kStep);
    // A kink as large as what is looked for is none of the derivative's business, however small the slopes are.
    const double kink = std::max(1e-3 * std::max(std::fabs(slope), size), 5e-6 * scale);
    if (!(std::fabs(slope - half) <= 1e-6 * scale) || !(sides <= kink)) {
      if (result.slopes == Slopes::kNone) result.slopes = Slopes::kRough;
      continue;
    }
    result.slopes = Slopes::kChecked;
    if (!(std::fabs(slope - predicted) <= 1e-5 * scale))
      result.difference = str("the slope of '", d.y.name(), "' is ", slope, ", and its derivatives make it ", predicted,
                              "; their terms add up to ", size);
    if (result.difference) return result;
  }
  return result;
}

}  // namespace weft::random_graphs
