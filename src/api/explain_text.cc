// An explanation as text for people.
#include <algorithm>
#include <cmath>

#include "api/explain_parts.h"
#include "base/str.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr std::size_t kMostWarnings = 12;

const Explanation::Placed& named(const Explanation& e, const std::string& name) {
  std::vector<std::string> known;
  for (const Explanation::Placed& t : e.tensors) {
    if (t.name == name) return t;
    known.push_back(t.name);
  }
  const std::string near = nearest_word(name, known);
  throw UserError({.code = "explain.unknown-tensor",
                   .what = str("the program has no tensor '", name, "' to show"),
                   .where = str("layout \"", e.layout, "\", mesh ", e.mesh),
                   .fix = near.empty() ? "give a name that the program's text has after a '%' and a number"
                                       : str("did you mean '", near, "'?")});
}

// The biggest of one use, by the bytes of the whole; of equal ones the first.
void add_biggest(const Explanation& e, const std::string& use, std::size_t most,
                 std::vector<const Explanation::Placed*>& to) {
  std::vector<const Explanation::Placed*> all;
  for (const Explanation::Placed& t : e.tensors)
    if (t.use == use && !t.whole.empty()) all.push_back(&t);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->whole.elements() > b->whole.elements(); });
  to.insert(to.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), most)));
}

std::string pictures(const Explanation& e, const std::vector<std::string>& show) {
  std::vector<const Explanation::Placed*> drawn;
  for (const std::string& name : show) drawn.push_back(&named(e, name));
  if (show.empty()) {
    add_biggest(e, "variable", 3, drawn);
    add_biggest(e, "input", 1, drawn);
    add_biggest(e, "output", 1, drawn);
  }
  std::vector<std::string> texts;
  for (const Explanation::Placed* t : drawn) texts.push_back(picture(*t, e.mesh));
  return join(texts, "\n");
}

std::string counts(const Explanation& e) {
  const auto phase = [&](const char* name) {
    const auto found = e.contract_flops.find(name);
    return count_text(found == e.contract_flops.end() ? 0 : found->second);
  };
  const double nominal = e.model_flops / std::max(e.mesh.size(), 1);
  std::string recompute;
  if (phase("recompute") != "0") recompute = str(", recompute ", phase("recompute"));
  std::string again;
  if (e.recomputed_flops > 0)
    again = str("; done again to save memory: ", count_text(e.recomputed_flops), ", ",
                percent_text(e.recomputed_flops / e.executed_flops));
  std::vector<std::vector<std::string>> rows = {
      {"flops of contractions", str("forward ", phase("forward"), recompute, ", backward ", phase("backward"))},
      {"flops in all",
       str(count_text(e.executed_flops), " (the model's, shared out evenly: ", count_text(nominal), again, ")")},
      {"parameters", str(count_text(static_cast<double>(e.parameters_per_processor)), " of ",
                         count_text(static_cast<double>(e.parameters)))},
      {"variables", bytes_text(e.variable_bytes)}};
  if (!e.compiler || !e.compiler->topology.empty()) {
    rows.push_back({"arena", str(bytes_text(e.arena_bytes), " (", bytes_text(e.live_bytes),
                                 " in use at once; workspaces ", bytes_text(e.workspace_bytes), " of it)")});
    rows.push_back({"scratch", bytes_text(e.scratch_bytes)});
  }
  for (std::vector<std::string>& row : compiler_rows(e)) rows.push_back(std::move(row));
  rows.push_back(
      {"work ratio", str(std::round(e.work_ratio * 1000) / 1000,
                         " (all processors over one that does it all; F = ", count_text(e.machine.peak()),
                         "flop/s, B = ", count_text(e.machine.bytes_per_second), "B/s)")});
  return table_text(rows, "  ");
}

std::string warning_lines(const Explanation& e) {
  if (e.warnings.empty()) return "  none\n";
  std::string text;
  const std::size_t shown = std::min(e.warnings.size(), kMostWarnings);
  for (std::size_t i = 0; i < shown; ++i) text += str("  ", e.warnings[i].kind, ": ", e.warnings[i].text, "\n");
  if (shown < e.warnings.size()) text += str("  and ", e.warnings.size() - shown, " more: see --json\n");
  return text;
}

std::string heading(const Explanation& e) {
  const int n = e.mesh.size();
  return str("mesh ", e.mesh.axes().empty() ? "of one processor" : e.mesh.text(), ", layout \"", e.layout, "\"",
             e.store.level() == 0 ? "" : str(", store \"", e.store.text(), "\" level ", e.store.level()), ": ", n,
             n == 1 ? " processor, " : " processors, ", e.instructions, " instructions, compiled in ",
             seconds_text(e.compile_seconds), "\n");
}

std::string counts_text(const Explanation& e) {
  return str("On each processor, in one step\n", counts(e), "\nCollectives, on each processor, in one step\n",
             collectives_text(e.collectives, true),
             "\nKernels: instruction, count, the engine that serves it, share of the work\n", kernels_text(e));
}

}  // namespace

std::string Explanation::text(const std::vector<std::string>& show) const {
  const std::string grids = pictures(*this, show);
  return str(summary(), "\nHow shards lie on the mesh\n", grids, "\nThe program of every processor\n", program());
}

std::string Explanation::summary() const {
  return str(heading(*this), "\n", counts_text(*this), stored_text(*this), "\nWarnings\n", warning_lines(*this));
}

}  // namespace weft
