// Lists the engine whose kernel serves each instruction of a program, so that a slow kernel is seen.
#include <algorithm>
#include <map>

#include "api/explain_parts.h"
#include "base/str.h"

namespace weft {

namespace {

constexpr double kLeastShare = 0.01;

}  // namespace

std::vector<Explanation::Kernel> kernels_of(const BindReport& bound, const Machine& machine) {
  // A loop's body counts as often as it runs.
  std::map<const Program*, double> times;
  if (!bound.instructions.empty()) {
    const Program* outermost = bound.instructions.back().program;
    visit_bodies(*outermost, [&](const Program& body, std::int64_t runs) { times[&body] = static_cast<double>(runs); });
  }
  std::map<std::pair<std::string, std::string>, Explanation::Kernel> kernels;
  double all = 0;
  for (const RunInstr& each : bound.instructions) {
    if (each.finishes || each.instr->is<Loop>()) continue;
    const Cost cost = cost_of(*each.program, *each.instr);
    const double seconds =
        times[each.program] * std::max(cost.flops / machine.peak(), cost.bytes / machine.bytes_per_second);
    Explanation::Kernel& kernel = kernels[{name_of(*each.instr), each.served_by}];
    kernel.instruction = name_of(*each.instr);
    kernel.served_by = each.served_by;
    ++kernel.count;
    kernel.share += seconds;
    all += seconds;
  }
  std::vector<Explanation::Kernel> list;
  for (auto& [key, kernel] : kernels) {
    if (all > 0) kernel.share /= all;
    list.push_back(std::move(kernel));
  }
  return list;
}

std::vector<Explanation::Warning> slow_kernels(const Explanation& e, const std::string& engine) {
  std::vector<Explanation::Warning> warnings;
  for (const Explanation::Kernel& kernel : e.kernels) {
    if (kernel.served_by != "reference" || kernel.served_by == engine || kernel.share < kLeastShare) continue;
    warnings.push_back({.kind = "slow kernel",
                        .axes = {},
                        .cause = {kernel.instruction},
                        .share = kernel.share,
                        .text = str("device '", engine, "' has no fast kernel for ", kernel.count, " instructions ",
                                    kernel.instruction, ", ", percent_text(kernel.share), " of the step's work: the ",
                                    kernel.served_by, " kernel serves them, slowly")});
  }
  return warnings;
}

std::string kernels_text(const Explanation& e) {
  std::vector<std::vector<std::string>> rows;
  for (const Explanation::Kernel& kernel : e.kernels)
    rows.push_back({kernel.instruction, str(kernel.count), kernel.served_by, percent_text(kernel.share)});
  return rows.empty() ? "  none\n" : table_text(rows, "  ", 3);
}

}  // namespace weft
