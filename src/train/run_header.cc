#include "train/run_header.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "train/parts.h"
#include "weft/detail/progress.h"

namespace weft::train {

namespace {

constexpr double kMuchRepeated = 0.25;  // of the flops
constexpr std::size_t kMostFiles = 3;
const std::string kNext = "\n           ";  // the second line of a warning

std::string counted(std::int64_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

std::string files_text(const std::vector<std::string>& files) {
  std::string text;
  std::uintmax_t bytes = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (i < kMostFiles) text += (i == 0 ? "" : ", ") + files[i];
    std::error_code none;
    const std::uintmax_t size = std::filesystem::file_size(files[i], none);
    if (!none) bytes += size;
  }
  if (files.size() > kMostFiles)
    text += " and " + counted(static_cast<std::int64_t>(files.size() - kMostFiles), "more file");
  return text + " (" + bytes_text(static_cast<std::int64_t>(bytes)) + ")";
}

std::string step_text(const Config& c) {
  const std::int64_t rows = c.sequences();
  const auto [tokens, what] = c.model->row_tokens(c);
  const std::string text = counted(rows, "sequence") + " of " + std::to_string(tokens) + " " + what + ", " +
                           count_text(static_cast<double>(rows * tokens)) + " tokens";
  return c.batch.microbatches > 1 ? text + ", in " + std::to_string(c.batch.microbatches) + " microbatches" : text;
}

std::string vocabulary_text(const Config& c) {
  const std::int64_t limit = source(c, c.data.train, true).vocab_limit;
  return c.data.vocabulary + ", " + std::to_string(limit > 0 ? limit : data::Vocabulary::of(c.data.vocabulary).size()) +
         " tokens";
}

std::string mesh_text(const Config& c, const Explanation& plan) {
  const int n = plan.mesh.size();
  return (plan.mesh.axes().empty() ? "" : plan.mesh.text() + ", ") + counted(n, "processor") + " on wire " +
         wire::named(c.mesh.wire).name;
}

std::string layout_text(const Explanation& plan) {
  const std::string layout = plan.layout.empty() ? "none: nothing is split" : plan.layout;
  if (plan.store.level() == 0) return layout;
  return layout + "; store " + plan.store.text() + ", level " + std::to_string(plan.store.level());
}

// What the processors of this process need. A second line, a warning, is indented like the header's own.
std::string memory_lines(const Config& c, const Explanation& plan, const MachineMemory& machine) {
  const bool one_process = wire::named(c.mesh.wire).name == wire::threads().name;
  std::string text = memory_text(plan, one_process ? plan.mesh.size() : 1, machine);
  if (const std::size_t next = text.find('\n'); next != std::string::npos) text.insert(next + 1, "  ");
  return text;
}

bool splits_something(const Explanation& plan, int axis) {
  const auto has = [axis](const Axes& axes) { return std::find(axes.begin(), axes.end(), axis) != axes.end(); };
  return std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const Explanation::Placed& t) {
    return has(t.partial) || std::any_of(t.split.begin(), t.split.end(), has);
  });
}

// The share of the flops that all processors along the axis do alike.
double repeated_share(const Explanation& plan, const std::string& axis) {
  double share = 0;
  for (const Explanation::Warning& warning : plan.warnings)
    if (warning.kind == "replicated work" &&
        std::find(warning.axes.begin(), warning.axes.end(), axis) != warning.axes.end())
      share += warning.share;
  return share;
}

// ", as \"batch:data\"": dims that the layout does not lay yet; "" if it lays the usual ones.
std::string free_dims(const Config& c, const Explanation& plan, const std::string& axis) {
  const Layout layout = Layout::parse(plan.layout);
  const auto is_laid = [&](const std::string& dim) {
    return std::any_of(layout.rules().begin(), layout.rules().end(), [&](const auto& rule) { return rule.dim == dim; });
  };
  std::string dims = "batch";
  if (is_laid("batch")) {
    dims.clear();
    for (const std::string& dim : c.model->dims_to_split())
      if (!is_laid(dim)) dims += (dims.empty() ? "" : ",") + dim;
  }
  return dims.empty() ? "" : ", as \"" + dims + ":" + axis + "\"";
}

std::vector<std::string> warnings_of(const Config& c, const Explanation& plan, int cores) {
  std::vector<std::string> all;
  const int processors = plan.mesh.size();
  if (wire::named(c.mesh.wire).name == wire::threads().name && processors > cores)
    all.push_back(counted(processors, "processor") + " share " + counted(cores, "core") + " and take turns;" + kNext +
                  "a mesh of at most " + counted(cores, "processor") + " is faster here");
  for (std::size_t i = 0; i < plan.mesh.axes().size(); ++i) {
    const Axis& axis = plan.mesh.axes()[i];
    if (axis.size == 1) continue;
    const double share = repeated_share(plan, axis.name);
    const std::string who = "its " + counted(axis.size, "processor");
    if (!splits_something(plan, static_cast<int>(i)))
      all.push_back("axis '" + axis.name + "' splits nothing: " + who + " do the same work;" + kNext +
                    "lay a dim on it in mesh.layout" + free_dims(c, plan, axis.name) + ", or leave it out");
    else if (share >= kMuchRepeated)
      all.push_back("axis '" + axis.name + "': " + who + " do " + count_text(100 * share) + " % of the flops alike;" +
                    kNext + "weft train --dry-run says which");
  }
  return all;
}

}  // namespace

std::string run_header(const Config& config, const Explanation& plan, int cores, const MachineMemory& machine) {
  std::string text = config.name + ": " + count_text(static_cast<double>(plan.parameters)) + " parameters, " +
                     config.optimizer.name + ", " + counted(config.run.steps, "step") + "\n  data        " +
                     files_text(config.data.train) + "\n  step        " + step_text(config) + "\n  vocabulary  " +
                     vocabulary_text(config) + "\n  mesh        " + mesh_text(config, plan) + "\n  layout      " +
                     layout_text(plan) + "\n  memory      " + memory_lines(config, plan, machine);
  for (const std::string& warning : warnings_of(config, plan, cores)) text += "\n  warning: " + warning;
  return text;
}

std::string saved_by_bf16(const Config& config, const Explanation& planned, const Machine& machine) {
  if (config.mesh.device != device::cuda().name || config.run.f64) return "";
  Config narrow = config;
  try {
    set(narrow, "model.activations=bf16");
  } catch (const UserError&) {
    return "";  // a task without that setting
  }
  if (train::text(narrow) == train::text(config)) return "";
  const Explanation in_bf16 = plan(narrow, {.machine = machine});
  if (in_bf16.arena_bytes >= planned.arena_bytes) return "";
  return "note: this run computes in f32; with --set model.activations=bf16 the arena would be " +
         bytes_text(in_bf16.arena_bytes) + " instead of " + bytes_text(planned.arena_bytes) + " on each processor";
}

}  // namespace weft::train
