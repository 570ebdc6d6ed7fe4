// What weft plan finds beside the menu of layouts that people choose by hand, all predicted: data-parallel, model-parallel, both
// on two axes, and data-parallel with a storage layout of level 1 to 3, each with each number of microbatches. Prints one line
// of JSON for each config and machine: the plan, the fastest choice of the menu that fits in memory, and their ratio.
//
//   weft_bench_plan_menu SECONDS MACHINE[,MACHINE…] CONFIG.toml…
//
// Menu choices within 5 % of the fastest by the model of the search are compiled with all layers, like the plan, and these
// predictions are compared. A search stops after SECONDS; gap says whether its result was proved. The number of processors is the machine's, or the
// largest part of it, by halving, on which some choice of the menu works.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/str.h"
#include "weft/detail/train_parts.h"
#include "weft/error.h"
#include "weft/plan.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

class Menu {
 public:
  Menu(const StepFamily& family, const Machine& machine, const std::vector<std::string>& model_dims)
      : family_(family), machine_(machine), model_("") {
    for (const std::string& dim : model_dims) model_ += (model_.empty() ? "" : ",") + dim;
  }

  // False: no choice works, whether it fits or not.
  bool price(int processors) {
    const std::string all = str(":", processors);
    bool works = add("data" + all, "batch:data", "");
    works |= add("model" + all, model_ + ":model", "");
    for (int data = 2; data <= processors / 2; ++data)
      if (processors % data == 0)
        for (const bool data_first : {true, false}) {
          const std::string a = str("data:", data), b = str("model:", processors / data);
          works |= add(data_first ? a + " " + b : b + " " + a, "batch:data " + model_ + ":model", "");
        }
    for (const int level : {1, 2, 3}) works |= add("data" + all, "batch:data", "*:data", level);
    return works;
  }

  // The fastest with all layers, of those that fit.
  std::optional<PlanChoice> best() const {
    constexpr double kNear = 1.05;
    StepFamily whole = family_;
    whole.layers.clear();
    whole.build = [this](const std::vector<std::int64_t>&, std::int64_t microbatches, bool recompute) {
      return family_.build(family_.layers, microbatches, recompute);
    };
    double least = 0;
    for (const PlanChoice& one : fit_) least = least == 0 ? one.predicted.seconds : std::min(least, one.predicted.seconds);
    std::optional<PlanChoice> best;
    for (PlanChoice one : fit_) {
      if (one.predicted.seconds > kNear * least) continue;
      one.predicted = predict(whole, machine_, one);
      const bool fits = machine_.memory_bytes == 0 || one.predicted.bytes() <= machine_.memory_bytes;
      if (fits && (!best || one.predicted.seconds < best->predicted.seconds)) best = one;
    }
    return best;
  }
  int priced() const { return priced_; }
  std::size_t fitting() const { return fit_.size(); }

 private:
  bool add(const std::string& mesh, const std::string& layout, const std::string& store, int level = 0) {
    bool works = false;
    for (const std::int64_t microbatches : family_.microbatches) {
      PlanChoice choice;
      choice.mesh = Mesh::parse(mesh);
      choice.layout = Layout::parse(layout);
      if (level) choice.store = Store::parse(store, level);
      choice.microbatches = microbatches;
      try {
        choice.predicted = predict(family_, machine_, choice);
      } catch (const UserError&) {
        continue;
      }
      works = true;
      ++priced_;
      if (machine_.memory_bytes > 0 && choice.predicted.bytes() > machine_.memory_bytes) continue;
      fit_.push_back(choice);
    }
    return works;
  }

  const StepFamily& family_;
  const Machine& machine_;
  std::string model_;
  std::vector<PlanChoice> fit_;
  int priced_ = 0;
};

// The transformer's dims, without those that the graph lacks.
std::vector<std::string> model_dims(const StepFamily& family) {
  std::vector<std::string> found;
  const auto names = family.build(std::vector<std::int64_t>(family.layers.size(), 1), 1, false).graph.variables();
  for (const char* dim : {"heads", "d_ff", "vocab"})
    if (std::ranges::any_of(names, [&](const Tensor& x) { return x.shape().has(dim); })) found.emplace_back(dim);
  return found;
}

void compare(const std::string& path, const Machine& machine, double seconds) {
  const train::Config config = train::completed(train::read_config(path));
  const StepFamily family = train::step_family(config);
  const std::vector<std::string> dims = model_dims(family);
  std::optional<Menu> menu;
  int processors = machine.processors;
  for (; processors > 1; processors /= 2) {
    menu.emplace(family, machine, dims);
    if (menu->price(processors)) break;
  }
  PlanOptions options;
  options.seconds = seconds;
  Json line{{"config", config.name}, {"machine", machine.name}, {"processors", processors}};
  try {
    const Plan made = plan(family, machine, processors, options);
    line.update(Json{{"plan", static_cast<const PlanChoice&>(made).text()}, {"plan_s", made.predicted.seconds}});
    line.update(Json{{"gap", made.gap}, {"search_s", made.search_seconds}});
  } catch (const UserError& error) {
    line["error"] = error.text().what;
  }
  line.update(Json{{"menu_priced", menu->priced()}, {"menu_fits", menu->fitting()}});
  if (const std::optional<PlanChoice> best = menu->best()) {
    line.update(Json{{"menu_best", best->text()}, {"menu_s", best->predicted.seconds}});
    if (line.contains("plan_s")) line["ratio"] = line["plan_s"].get<double>() / best->predicted.seconds;
  }
  std::cout << line.dump() << std::endl;
}

// Some configs need a vocabulary that is not there.
void compare_if_readable(const std::string& path, const Machine& machine, double seconds) {
  try {
    compare(path, machine, seconds);
  } catch (const UserError& error) {
    std::cerr << path << " is left out: " << error.text().what << "\n";
  }
}

}  // namespace
}  // namespace weft

int main(int count, char** words) {
  try {
    const double seconds = count > 1 ? std::stod(words[1]) : 5;
    for (const std::string& name : weft::split_words(count > 2 ? words[2] : "tpuv2-512", ",")) {
      const weft::Machine machine = weft::Machine::load(name);
      for (int i = 3; i < count; ++i) weft::compare_if_readable(words[i], machine, seconds);
    }
  } catch (const weft::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
