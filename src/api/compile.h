// Graph -> program, all passes run.
#pragma once

#include <vector>

#include "program/pipeline.h"
#include "runtime/engine.h"
#include "weft/session.h"

namespace weft {

struct Compiled {
  Program program;
  std::vector<PassTime> times;  // of the partitioner and each pass
};

// For this backend: programs differ in what is fused. UserError, with the fix, if the layout cannot work or a tensor is not of this graph.
Compiled compile_program(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                         const Store& store = {}, const Engine& engine = reference_engine());

// UserError if there is none.
const Engine& engine_named(const device::Choice& choice, const std::string& where);

}  // namespace weft
