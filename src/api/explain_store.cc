// The part of explain about a storage layout: how each variable is stored, and which variables could not be split.
#include <algorithm>

#include "api/explain_parts.h"
#include "base/str.h"
#include "partition/store.h"
#include "program/memory_plan.h"

namespace weft {

namespace {

// The axes of all rules that the mesh has, each once.
Axes axes_of(const Store& store, const Mesh& mesh) {
  Axes axes;
  for (const LayoutRule& rule : store.rules())
    for (const std::string& name : rule.axes)
      if (const int axis = mesh.find(name); axis >= 0 && std::find(axes.begin(), axes.end(), axis) == axes.end())
        axes.push_back(axis);
  return axes;
}

std::int64_t whole_bytes(const Explanation::Placed& t) {
  return t.whole.elements() * static_cast<std::int64_t>(size_of(t.dtype));
}

}  // namespace

std::vector<Explanation::Warning> stored_whole(const Program& program, const GraphData& graph, const Explanation& e) {
  const Axes axes = axes_of(e.store, program.mesh);
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  for (const ProgramVariable& variable : program.variables) {
    const Node& node = graph.nodes[graph.variable_nodes.at(variable.name)];
    const Value& value = program.values[variable.value];
    const bool is_split = std::any_of(axes.begin(), axes.end(), [&](int axis) { return value.sharding.uses(axis); });
    if (is_split || !is_stored_split(e.store, node.attrs.get<VariableOptions>("options"))) continue;
    names.push_back(variable.name);
    bytes += bytes_of(value);
  }
  if (names.empty() || program.mesh.size(axes) == 1) return {};
  const std::string along = text_of(axes, program.mesh);
  return {{.kind = "stored whole",
           .axes = split_words(along, "+"),
           .cause = names,
           .share = static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(e.variable_bytes, 1)),
           .text = str("the storage layout splits no dim of ", join(names, ", "), ": all ", program.mesh.size(axes),
                       " processors along ", along, " store the same ", bytes_text(bytes))}};
}

std::string stored_text(const Explanation& e) {
  if (e.store.level() == 0) return "";
  std::vector<std::vector<std::string>> rows{{"name", "dtype", "whole", "split", "stored", "of"}};
  for (const Explanation::Placed& t : e.tensors) {
    if (t.use != "variable") continue;
    const std::string split = text_of(Sharding{.dims = t.split, .partial = {}}, t.whole, e.mesh);
    rows.push_back(
        {t.name, std::string(name_of(t.dtype)), str(t.whole), split, bytes_text(t.bytes), bytes_text(whole_bytes(t))});
  }
  return str("\nVariables as each processor stores them\n", table_text(rows, "  ", 4));
}

}  // namespace weft
