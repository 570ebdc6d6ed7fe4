// A compiled program as StableHLO, for JAX and other tools: docs/stablehlo.md.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <string>

#include "weft/graph.h"
#include "weft/mesh.h"
#include "weft/session.h"

namespace weft::detail {

struct StableHlo {
  std::string module;    // the text; partition p of it is processor p of the mesh
  std::string manifest;  // JSON: mesh, arguments and results with their dims and how they are split
  int inputs = 0, variables = 0, results = 0;
};

// Nothing runs. UserError if the layout cannot work, or for instructions without a StableHLO form.
StableHlo stablehlo(const std::string& name, const Graph& graph, const Mesh& mesh, const Layout& layout,
                    const CompileOptions& options, const Store& store = {});

}  // namespace weft::detail
