// Graph -> program with its memory plan, all passes run.
#pragma once

#include "program/compiled.h"
#include "runtime/engine.h"
#include "weft/session.h"

namespace weft {

// For this engine: programs differ in what is fused. UserError, with the fix, if the layout cannot work or a tensor is
// not of this graph.
Compiled compile_program(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                         const Store& store, const Engine& engine);

// The same without the memory plan. Appends the times of the partitioner and of each pass.
Program lowered_program(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                        const Store& store, const Engine& engine, std::vector<PassTime>* times = nullptr);

}  // namespace weft
