// Idle axes, replicated work and big replicated tensors: processors along an axis that do the same work or hold the
// same data.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "api/explain_parts.h"
#include "base/index.h"
#include "base/str.h"
#include "program/cost.h"
#include "program/memory_plan.h"

namespace weft {

namespace {

constexpr double kLeastShareOfFlops = 0.01;
constexpr double kLeastShareOfVariables = 0.05;
constexpr std::int64_t kLeastBytes = std::int64_t{1} << 20;
constexpr std::int64_t kBigBytes = std::int64_t{16} << 20;  // big whatever else there is
constexpr std::size_t kMostNames = 4;

// The axes, of more than one processor, along which all hold the same of this value.
Axes alike(const Program& p, ValueId id) {
  Axes axes = replicated_axes(p.values[id].sharding, p.mesh);
  std::erase_if(axes, [&](int axis) { return p.mesh.axes()[at(axis)].size == 1; });
  return axes;
}

// The axes along which all do the same instruction on the same operands.
Axes repeated(const Program& p, const Instr& instr) {
  Axes axes = alike(p, instr.outputs[0]);
  for (const auto* ids : {&instr.outputs, &instr.inputs})
    for (ValueId id : *ids) {
      const Axes here = alike(p, id);
      std::erase_if(axes, [&](int axis) { return std::find(here.begin(), here.end(), axis) == here.end(); });
    }
  return axes;
}

// The dims of an instruction that are not split: what a layout could still lay on the axes.
std::vector<std::string> unsplit_dims(const Program& p, const Instr& instr) {
  std::vector<std::string> names;
  for (const auto* ids : {&instr.inputs, &instr.outputs})
    for (ValueId id : *ids) {
      const Value& v = p.values[id];
      for (std::size_t i = 0; i < v.shape.rank(); ++i)
        if (v.sharding.dims[i].empty() && std::find(names.begin(), names.end(), v.shape[i].name) == names.end())
          names.push_back(v.shape[i].name);
    }
  return names;
}

std::string some(const std::vector<std::string>& names) {
  const std::vector<std::string> first(names.begin(), names.begin() + std::min(names.size(), kMostNames));
  return join(first, ", ") + (names.size() > kMostNames ? str(" and ", names.size() - kMostNames, " more") : "");
}

using Key = std::pair<std::vector<std::string>, std::vector<std::string>>;  // axes, causes

std::vector<std::string> axis_names(const Axes& axes, const Mesh& mesh) {
  return split_words(text_of(axes, mesh), "+");
}

// One warning for all instructions of the same lines.
void replicated_work(const Program& p, const Explanation& e, std::vector<Explanation::Warning>& warnings) {
  struct Sum {
    double flops = 0;
    int processors = 1;
    std::vector<std::string> dims;
  };
  std::map<Key, Sum> sums;
  visit_bodies(p, [&](const Program& body, std::int64_t times) {
    for (const Instr& instr : body.body) {
      if (instr.outputs.empty() || is_view(instr) || is_collective(instr) || instr.is<Loop>()) continue;
      const double flops = cost_of(body, instr).flops * static_cast<double>(times);
      const Axes axes = repeated(body, instr);
      if (axes.empty() || flops == 0 || flops < kLeastShareOfFlops * e.executed_flops) continue;
      Sum& sum = sums[{axis_names(axes, p.mesh), instr.origin.causes}];
      sum.flops += flops;
      sum.processors = p.mesh.size(axes);
      sum.dims = unsplit_dims(body, instr);
    }
  });
  for (const auto& [key, sum] : sums) {
    const double share = sum.flops / e.executed_flops;
    warnings.push_back({.kind = "replicated work",
                        .axes = key.first,
                        .cause = key.second,
                        .share = share,
                        .text = str(percent_text(share), " of the flops are done alike by all ", sum.processors,
                                    " processors along ", join(key.first, "+"), ": ", some(key.second),
                                    "; lay one of the dims ", join(sum.dims, ", "), " on ", join(key.first, " or "))});
  }
}

// Every value with storage of its own; variables first.
std::vector<ValueId> stored_values(const Program& p) {
  std::vector<ValueId> all;
  for (const ProgramVariable& variable : p.variables) all.push_back(variable.value);
  for (const ProgramInput& input : p.inputs) all.push_back(input.value);
  for (const Instr& instr : p.body)
    if (!is_view(instr)) all.insert(all.end(), instr.outputs.begin(), instr.outputs.end());
  return all;
}

bool is_big(std::int64_t bytes, const Explanation& e) {
  return bytes >= kBigBytes ||
         (bytes >= kLeastBytes &&
          static_cast<double>(bytes) >= kLeastShareOfVariables * static_cast<double>(e.variable_bytes));
}

// One warning for all tensors that lie alike along the same axes.
void replicated_tensors(const Program& p, const Explanation& e, std::vector<Explanation::Warning>& warnings) {
  struct Found {
    std::vector<std::string> names, listed;
    std::set<std::string_view> known;  // the names
    std::int64_t variable_bytes = 0;
  };
  std::map<Axes, Found> found;
  const std::vector<ValueId> all = stored_values(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Value& v = p.values[all[i]];
    const std::int64_t bytes = bytes_of(v);
    const Axes axes = alike(p, all[i]);
    if (axes.empty() || !is_big(bytes, e)) continue;
    Found& here = found[axes];
    if (i < p.variables.size()) here.variable_bytes += bytes;
    if (!here.known.insert(v.name).second) continue;
    here.names.push_back(v.name);
    here.listed.push_back(str(v.name, " (", bytes_text(bytes), ")"));
  }
  for (const auto& [axes, here] : found)
    warnings.push_back({.kind = "replicated tensors",
                        .axes = axis_names(axes, p.mesh),
                        .cause = here.names,
                        .share = static_cast<double>(here.variable_bytes) /
                                 static_cast<double>(std::max<std::int64_t>(e.variable_bytes, 1)),
                        .text = str("all ", p.mesh.size(axes), " processors along ", text_of(axes, p.mesh),
                                    " hold the same of ", some(here.listed))});
}

}  // namespace

std::vector<Explanation::Warning> idle_axes(const Program& program) {
  std::vector<bool> used(program.mesh.axes().size(), false);
  visit_bodies(program, [&](const Program& body, std::int64_t) {
    for (const Value& value : body.values)
      for (std::size_t axis = 0; axis < used.size(); ++axis)
        if (value.sharding.uses(static_cast<int>(axis))) used[axis] = true;
  });
  std::vector<Explanation::Warning> warnings;
  for (std::size_t axis = 0; axis < used.size(); ++axis) {
    const auto& [name, size] = program.mesh.axes()[axis];
    if (used[axis] || size == 1) continue;
    warnings.push_back({.kind = "idle axis",
                        .axes = {name},
                        .cause = {},
                        .share = 1,
                        .text = str("axis '", name, "' splits nothing: the ", size, " processors along it do the same ",
                                    "work; lay a dim on it, or leave it out of the mesh")});
  }
  return warnings;
}

std::vector<Explanation::Warning> warnings_of(const Program& program, const Explanation& e) {
  const std::vector<Explanation::Warning> idle = idle_axes(program);
  std::vector<Explanation::Warning> warnings;
  replicated_work(program, e, warnings);
  replicated_tensors(program, e, warnings);
  std::stable_sort(warnings.begin(), warnings.end(), [](const auto& a, const auto& b) {
    return a.kind != b.kind ? a.kind == "replicated work" : a.share > b.share;
  });
  warnings.insert(warnings.begin(), idle.begin(), idle.end());
  return warnings;
}

}  // namespace weft
