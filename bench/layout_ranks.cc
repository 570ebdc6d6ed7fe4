// The rank of a config's own layout among all layouts on the mesh of the config, by predicted time: without storage
// layouts, microbatches and recomputation, which the paper did not have. Prints one line of JSON for each config.
//
//   weft_bench_layout_ranks MACHINE CONFIG.toml…
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/str.h"
#include "weft/detail/train_parts.h"
#include "weft/error.h"
#include "weft/plan.h"

namespace weft {
namespace {

using Roles = std::vector<std::vector<std::string>>;  // by dim: the axes that split it, in the order of the mesh

// Prices layouts of one config on its mesh.
class Ranking {
 public:
  Ranking(const train::Config& config, const Machine& machine)
      : family_(train::step_family(config)), machine_(machine), mesh_(Mesh::parse(config.mesh.mesh)) {
    for (const Axis& axis : mesh_.axes()) axes_.push_back(axis.name);
    PlanOptions options;
    options.mesh = mesh_;
    options.allow_store = false;
    options.fix = config.mesh.layout;  // a short search: only the dims are wanted
    options.seconds = 10;
    dims_ = plan(family_, machine, mesh_.size(), options).dims;
  }

  // Empty: the layout cannot work.
  std::optional<Prediction> price(const std::string& layout) const {
    PlanChoice choice;
    choice.mesh = mesh_;
    choice.layout = Layout::parse(layout);
    try {
      return predict(family_, machine_, choice);
    } catch (const UserError&) {
      return {};
    }
  }

  // Of all layouts that work and fit: by time. Two dims that cannot share an axis by themselves cannot in any layout.
  std::map<std::string, Prediction> all() {
    find_pairs();
    Roles roles(dims_.size());
    add(0, roles);
    return std::move(found_);
  }

 private:
  std::string text(const Roles& roles) const {
    std::vector<std::string> rules;
    for (std::size_t d = 0; d < dims_.size(); ++d)
      if (!roles[d].empty()) rules.push_back(str(dims_[d], ":", join(roles[d], "+")));
    return join(rules, " ");
  }

  void find_pairs() {
    for (const std::string& axis : axes_)
      for (std::size_t a = 0; a < dims_.size(); ++a) {
        allowed_[{axis, a, a}] = price(str(dims_[a], ":", axis)).has_value();
        for (std::size_t b = 0; b < a; ++b)
          allowed_[{axis, a, b}] = allowed_[{axis, a, a}] && allowed_[{axis, b, b}] &&
                                   price(str(dims_[a], ",", dims_[b], ":", axis)).has_value();
      }
  }

  bool may_split(const Roles& roles, std::size_t dim, const std::string& axis) const {
    if (!allowed_.at({axis, dim, dim})) return false;
    for (std::size_t b = 0; b < dim; ++b)
      if (std::ranges::find(roles[b], axis) != roles[b].end() && !allowed_.at({axis, dim, b})) return false;
    return true;
  }

  void add(std::size_t dim, Roles& roles) {
    if (dim == dims_.size()) {
      const std::string layout = text(roles);
      const std::optional<Prediction> priced = price(layout);
      if (priced && (machine_.memory_bytes == 0 || priced->bytes() <= machine_.memory_bytes)) found_[layout] = *priced;
      return;
    }
    for (unsigned over = 0; over < 1U << axes_.size(); ++over) {
      roles[dim].clear();
      bool may = true;
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        if (!(over >> i & 1)) continue;
        may = may && may_split(roles, dim, axes_[i]);
        roles[dim].push_back(axes_[i]);
      }
      if (may) add(dim + 1, roles);
    }
    roles[dim].clear();
  }

  StepFamily family_;
  const Machine& machine_;
  Mesh mesh_;
  std::vector<std::string> axes_, dims_;
  std::map<std::tuple<std::string, std::size_t, std::size_t>, bool> allowed_;  // axis, two dims
  std::map<std::string, Prediction> found_;
};

void rank(const std::string& path, const Machine& machine) {
  const train::Config config = train::completed(train::read_config(path));
  Ranking ranking(config, machine);
  const std::optional<Prediction> own = ranking.price(config.mesh.layout);
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [layout, predicted] : ranking.all()) order.emplace_back(predicted.seconds, layout);
  std::ranges::sort(order);
  const auto faster =
      std::ranges::count_if(order, [&](const auto& one) { return own && one.first < own->seconds * (1 - 1e-9); });
  std::cout << nlohmann::ordered_json{{"config", config.name},
                                      {"mesh", config.mesh.mesh},
                                      {"layout", config.mesh.layout},
                                      {"seconds", own ? own->seconds : 0},
                                      {"rank", faster + 1},
                                      {"layouts", order.size()},
                                      {"fastest", order.front().second},
                                      {"fastest_seconds", order.front().first}}
                   .dump()
            << std::endl;
}

}  // namespace
}  // namespace weft

int main(int count, char** words) {
  try {
    const weft::Machine machine = weft::Machine::load(count > 1 ? words[1] : "tpuv2-512");
    for (int i = 2; i < count; ++i) weft::rank(words[i], machine);
  } catch (const weft::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
