// Built-in models, by name and with settable sizes: what `weft explain` shows. Each is a graph made of the public
// functions alone, with what to fetch and update, and a mesh and layout that suit it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "weft/graph.h"
#include "weft/mesh.h"
#include "weft/session.h"

namespace weft::models {

// Dim name (or "layers") -> size.
using Sizes = std::map<std::string, std::int64_t>;

struct Model {
  std::string name;
  Graph graph;
  CompileOptions options;  // fetch and update
  Mesh mesh;
  Layout layout;  // for that mesh
};

std::vector<std::string> names();
// One line on the model of that name, and its sizes unless others are given. UserError if there is no such model.
std::string description(const std::string& name);
Sizes default_sizes(const std::string& name);

// UserError if there is no such model, or if it has no such size.
Model build(const std::string& name, const Sizes& sizes = {});

// "batch=64,hidden=1024". UserError, with the place, for any other text, a size below one or a dim given twice.
Sizes parse_sizes(std::string_view text);

}  // namespace weft::models
