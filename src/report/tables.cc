// Summary, bytes of collectives, frontier, candidates and rules.
#include <algorithm>
#include <cmath>
#include <map>

#include "report/html.h"
#include "report/sections.h"
#include "report/steps.h"
#include "weft/detail/progress.h"

namespace weft::report {

namespace {

const char* const kNoPlan = "No search was made for this page: weft plan makes one.";

std::string tile(std::string_view name, std::string_view value, std::string_view note = {}) {
  return text("<div><dt>", escaped(name), "</dt><dd>", escaped(value),
              note.empty() ? "" : text("<small>", escaped(note), "</small>"), "</dd></div>\n");
}

std::string signed_seconds(double seconds) { return text(seconds < 0 ? "-" : "+", seconds_text(std::abs(seconds))); }

std::string signed_bytes(std::int64_t bytes) { return text(bytes < 0 ? "-" : "+", bytes_text(std::abs(bytes))); }

std::string mesh_text(const Mesh& mesh) { return mesh.axes().empty() ? "one processor" : mesh.text(); }

std::string recompute_words(Recompute recompute) {
  return recompute == Recompute::kLayers     ? "every layer"
         : recompute == Recompute::kCompiler ? "by the compiler"
                                             : "none";
}

std::string store_words(const Store& store) {
  return store.level() == 0 ? "none" : text(store.text(), " level ", store.level());
}

// What runs, as the words of a config.
std::string choice_body(const StepReport& report) {
  const Explanation& e = report.compiled;
  std::vector<std::pair<std::string, std::string>> words = {
      {"mesh", mesh_text(e.mesh)}, {"layout", e.layout.empty() ? "nothing is split" : e.layout}};
  if (e.store.level() > 0) words.emplace_back("store", store_words(e.store));
  if (report.plan && report.plan->microbatches > 1) words.emplace_back("microbatches", text(report.plan->microbatches));
  if (report.plan && report.plan->recompute != Recompute::kNone)
    words.emplace_back("recomputation", recompute_words(report.plan->recompute));
  std::string out = "<div class=\"choice\">";
  for (const auto& [name, value] : words)
    out += text("<div>", escaped(name), " <code>", escaped(value), "</code></div>");
  return out + "</div>\n";
}

double measured_seconds(const StepReport& report) {
  if (!report.measured) return 0;
  const MeasuredStep& m = *report.measured;
  return m.seconds > 0 || m.trace.empty() ? m.seconds : step_of(m.trace).seconds;
}

std::string bound_words(const Plan& plan) {
  if (plan.gap <= 0) return "no candidate of the model is better";
  return text("the best may be up to ", percent(plan.gap), " better", plan.stopped ? "; the search was stopped" : "");
}

std::vector<Cell> choice_cells(const PlanChoice& c, const std::string& what) {
  const Prediction& p = c.predicted;
  return {{what},
          {mesh_text(c.mesh)},
          {c.layout.text()},
          {store_words(c.store)},
          number_cell(text(c.microbatches)),
          {recompute_words(c.recompute)},
          number_cell(seconds_text(p.seconds)),
          number_cell(seconds_text(p.compute)),
          number_cell(seconds_text(p.exposed)),
          number_cell(bytes_text(p.bytes()))};
}

// Sums of transfers by a key, the most bytes first.
template <class Key>
std::vector<std::pair<std::string, Simulation::Transfer>> grouped(const std::vector<Simulation::Transfer>& all,
                                                                  Key key) {
  std::map<std::string, Simulation::Transfer> sums;
  for (const Simulation::Transfer& t : all) {
    Simulation::Transfer& sum = sums[key(t)];
    sum.count += t.count;
    sum.bytes += t.bytes;
    sum.seconds += t.seconds;
    sum.exposed_seconds += t.exposed_seconds;
  }
  std::vector<std::pair<std::string, Simulation::Transfer>> rows(sums.begin(), sums.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  return rows;
}

template <class Key>
std::string transfers_table(const std::string& head, const std::vector<Simulation::Transfer>& all, Key key) {
  const auto rows = grouped(all, key);
  const double most = rows.empty() ? 1 : std::max<double>(1, static_cast<double>(rows[0].second.bytes));
  std::vector<std::vector<Cell>> cells;
  for (const auto& [name, sum] : rows)
    cells.push_back({{name},
                     {bytes_text(sum.bytes), static_cast<double>(sum.bytes) / most},
                     number_cell(text(sum.count)),
                     number_cell(seconds_text(sum.seconds)),
                     number_cell(seconds_text(sum.exposed_seconds))});
  return table({head, "bytes that enter", "collectives", "on the wire", "waited for"}, cells);
}

}  // namespace

std::string summary_body(const StepReport& report) {
  const Simulation& s = report.predicted;
  const std::int64_t bytes = s.variable_bytes + s.arena_bytes;
  std::string out = choice_body(report) + "<dl class=\"tiles\">\n";
  out += tile("predicted step", seconds_text(s.seconds), text("on ", s.machine));
  if (const double measured = measured_seconds(report); measured > 0)
    out += tile("measured step", seconds_text(measured),
                text("the prediction is ", percent(std::abs(s.seconds / measured - 1)),
                     s.seconds < measured ? " shorter" : " longer"));
  out += tile("model flops utilization", percent(s.utilization), "time of the products at the peak, over the step");
  out += tile("waiting for collectives", seconds_text(s.exposed_seconds),
              text("of ", seconds_text(s.wire_seconds), " on the wire"));
  out += tile("memory of a processor", bytes_text(bytes),
              s.memory_bytes > 0 ? text(percent(static_cast<double>(bytes) / static_cast<double>(s.memory_bytes)),
                                        " of ", bytes_text(s.memory_bytes))
                                 : "");
  if (report.plan) {
    const Plan& plan = *report.plan;
    out += tile("gap", plan.gap <= 0 ? "0, proved" : percent(plan.gap), bound_words(plan));
    if (plan.best.size() > 1)
      out += tile("the runner-up loses", signed_seconds(plan.best[1].predicted.seconds - plan.predicted.seconds),
                  plan.best[1].text());
  }
  return out + "</dl>\n";
}

std::string collectives_body(const StepReport& report) {
  const std::vector<Simulation::Transfer>& all = report.predicted.transfers;
  if (all.empty()) return paragraph("The step has no collectives.");
  std::string out = paragraph("Bytes that enter the collectives of one processor in one step, and predicted times.");
  out += "<h3>By collective</h3>\n" + transfers_table("collective", all, [](const Simulation::Transfer& t) {
           return text(t.kind, " over ", t.axes, ", ", t.phase);
         });
  return out + "<h3>By line of the program that caused it</h3>\n" +
         transfers_table("line", all, [](const Simulation::Transfer& t) { return t.cause.empty() ? "-" : t.cause; });
}

std::string candidates_body(const StepReport& report) {
  if (!report.plan) return paragraph(kNoPlan);
  const Plan& plan = *report.plan;
  std::vector<std::vector<Cell>> rows;
  for (std::size_t i = 0; i < plan.best.size(); ++i)
    rows.push_back(choice_cells(plan.best[i], i == 0 ? "chosen" : text(i + 1)));
  for (const PlanChoice& choice : plan.frontier) rows.push_back(choice_cells(choice, "frontier"));
  std::string out = paragraph(text(plan.meshes, " meshes, ", plan.bounded, " bounds, ", plan.priced,
                                   " candidates compiled in ", seconds_text(plan.search_seconds),
                                   ". The numbered candidates are predicted on their whole program, those "
                                   "of the frontier on ",
                                   plan.folding, "."));
  for (const std::string& failure : plan.failures) out += paragraph("left out, a bug in Weft: " + failure);
  return out + table({"", "mesh", "layout", "store", "microbatches", "recomputation", "step", "computing", "waiting",
                      "memory"},
                     rows);
}

std::string rules_body(const StepReport& report) {
  if (!report.plan) return paragraph(kNoPlan);
  const Plan& plan = *report.plan;
  if (plan.reasons.empty()) return paragraph("The choice has no rules: nothing is split.");
  std::vector<std::vector<Cell>> rows;
  for (const PlanReason& reason : plan.reasons) {
    std::vector<Cell> row = {{reason.rule}};
    if (!reason.without) {
      for (int i = 0; i < 3; ++i) row.push_back(number_cell(""));
      row.push_back({reason.refusal});
    } else {
      const Prediction& p = *reason.without;
      const bool fits = plan.memory_limit <= 0 || p.bytes() <= plan.memory_limit;
      row.push_back(number_cell(signed_seconds(p.seconds - plan.predicted.seconds)));
      row.push_back(number_cell(signed_seconds(p.exposed - plan.predicted.exposed)));
      row.push_back(number_cell(signed_bytes(p.bytes() - plan.predicted.bytes())));
      row.push_back({fits ? "" : "does not fit into memory"});
    }
    rows.push_back(std::move(row));
  }
  return paragraph("What the step costs without one rule, everything else the same.") +
         table({"rule", "step", "waiting", "memory", ""}, rows);
}

}  // namespace weft::report
