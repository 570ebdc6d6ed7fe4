// A plan for people, and as JSON.
#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/str.h"
#include "weft/detail/progress.h"
#include "weft/plan.h"

namespace weft {

namespace {

const char* name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::kLayers: return "every layer";
    case Recompute::kCompiler: return "by the compiler";
    default: return "none";
  }
}

std::string percent_text(double share) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << share * 100 << " %";
  return out.str();
}

std::string prediction_text(const Prediction& p) {
  return str(seconds_text(p.seconds), " a step (", seconds_text(p.compute), " of computation, ",
             seconds_text(p.exposed), " of waiting), ", bytes_text(p.bytes()), " a processor");
}

std::string difference_text(const Prediction& without, const Prediction& with) {
  const double seconds = without.seconds - with.seconds;
  const std::int64_t bytes = without.bytes() - with.bytes();
  return str(seconds < 0 ? "-" : "+", seconds_text(std::abs(seconds)), " (waiting ",
             without.exposed < with.exposed ? "-" : "+", seconds_text(std::abs(without.exposed - with.exposed)), "), ",
             bytes < 0 ? "-" : "+", bytes_text(std::abs(bytes)));
}

nlohmann::ordered_json json_of(const Prediction& p) {
  return {{"seconds", p.seconds},        {"compute", p.compute}, {"wire", p.wire},
          {"exposed", p.exposed},        {"flops", p.flops},     {"variable_bytes", p.variable_bytes},
          {"arena_bytes", p.arena_bytes}};
}

nlohmann::ordered_json json_of(const PlanChoice& c) {
  return {{"mesh", c.mesh.text()},
          {"layout", c.layout.text()},
          {"store", c.store.text()},
          {"store_level", c.store.level()},
          {"microbatches", c.microbatches},
          {"recompute", name_of(c.recompute)},
          {"predicted", json_of(c.predicted)},
          {"is_whole", c.is_whole}};
}

// How many processors compute the same: those along axes that split and store nothing.
int idle_processors(const PlanChoice& choice) {
  int idle = 1;
  const std::vector<std::string> stored =
      split_words(choice.store.level() > 0 ? choice.store.text().substr(choice.store.text().find(':') + 1) : "", "+");
  for (const Axis& axis : choice.mesh.axes()) {
    const bool splits = std::ranges::any_of(choice.layout.rules(), [&](const LayoutRule& rule) {
      return std::ranges::find(rule.axes, axis.name) != rule.axes.end();
    });
    if (!splits && std::ranges::find(stored, axis.name) == stored.end()) idle *= axis.size;
  }
  return idle;
}

}  // namespace

std::string PlanChoice::text() const {
  std::string text = str("mesh \"", mesh, "\" layout \"", layout.text(), "\"");
  if (store.level() > 0) text += str(" store \"", store.text(), "\" level ", store.level());
  if (microbatches > 1) text += str(" microbatches ", microbatches);
  if (recompute != Recompute::kNone) text += str(" recompute ", name_of(recompute));
  return text;
}

std::string Plan::summary() const {
  std::ostringstream out;
  out << "plan: " << text() << "\n";
  out << "predicted: " << prediction_text(predicted) << "\n";
  out << (gap <= 0 ? "proved: no candidate of the model is better"
                   : str("not proved: the best may be up to ", percent_text(gap), " better"))
      << " (" << meshes << " meshes, " << bounded << " bounds, " << priced << " prices from " << compiled
      << " programs in " << seconds_text(search_seconds) << "; priced on " << folding << ")\n";
  if (const int idle = idle_processors(*this); idle > 1)
    out << "only one of each " << idle
        << " processors does work of its own: choose a number of processors that divides the sizes of dims\n";
  out << "dims that may be split: " << join(dims, ", ") << "\n";
  for (const std::string& failure : failures) out << "left out, a bug in Weft: " << failure << "\n";
  if (best.size() > 1)
    out << "runner-up: " << best[1].text() << "\n  loses " << difference_text(best[1].predicted, predicted) << "\n";
  if (!reasons.empty()) out << "without one rule, all else the same:\n";
  for (const PlanReason& reason : reasons) {
    out << "  " << reason.rule << ": ";
    if (!reason.without) out << reason.refusal << "\n";
    else
      out << difference_text(*reason.without, predicted)
          << (memory_limit > 0 && reason.without->bytes() > memory_limit ? ", does not fit" : "") << "\n";
  }
  if (frontier.size() > 1) out << "time against memory, of the candidates that were priced:\n";
  for (const PlanChoice& choice : frontier)
    if (frontier.size() > 1)
      out << "  " << std::setw(9) << seconds_text(choice.predicted.seconds) << "  " << std::setw(9)
          << bytes_text(choice.predicted.bytes()) << "  " << choice.text() << "\n";
  return out.str();
}

std::string Plan::json() const {
  nlohmann::ordered_json all = json_of(static_cast<const PlanChoice&>(*this));
  all["bound"] = bound;
  all["gap"] = gap;
  all["stopped"] = stopped;
  all["memory_limit"] = memory_limit;
  all["dims"] = dims;
  all["folding"] = folding;
  all["meshes"] = meshes;
  all["bounded"] = bounded;
  all["priced"] = priced;
  all["compiled"] = compiled;
  all["search_seconds"] = search_seconds;
  all["failures"] = failures;
  for (const auto& [key, list] : {std::pair("best", &best), std::pair("frontier", &frontier)}) {
    all[key] = nlohmann::ordered_json::array();
    for (const PlanChoice& choice : *list) all[key].push_back(json_of(choice));
  }
  all["reasons"] = nlohmann::ordered_json::array();
  for (const PlanReason& reason : reasons) {
    nlohmann::ordered_json one = {{"rule", reason.rule}};
    if (reason.without) one["without"] = json_of(*reason.without);
    else one["refusal"] = reason.refusal;
    all["reasons"].push_back(one);
  }
  return all.dump(2);
}

}  // namespace weft
