// compile_program for the reference engine: what most tests of programs look at.
#pragma once

#include "api/compile.h"
#include "runtime/host/host_engine.h"

namespace weft {

inline Compiled compile_program(const Graph& graph, const Mesh& mesh, const Layout& layout,
                                const CompileOptions& options, const Store& store = {}) {
  return compile_program(graph, mesh, layout, options, store, reference_engine());
}

}  // namespace weft
