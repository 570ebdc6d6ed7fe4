// Shared by the files of explain: warnings, and numbers and tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "language/graph_data.h"
#include "program/cost.h"
#include "program/ir.h"
#include "runtime/engine.h"
#include "weft/explain.h"
#include "weft/detail/progress.h"

namespace weft {

// Needs the counts of `e`: shares are taken of them.
std::vector<Explanation::Warning> warnings_of(const Program& program, const Explanation& e);

// The axes, of more than one processor, over which nothing in the program is split: processors along one do the same.
std::vector<Explanation::Warning> idle_axes(const Program& program);

// Which engine's kernels serve the instructions of a bound program. Shares are of its work on `machine`.
std::vector<Explanation::Kernel> kernels_of(const BindReport& bound, const Machine& machine);

// The instructions that other engines than the one asked for serve, if that is more than a hundredth of the step.
std::vector<Explanation::Warning> slow_kernels(const Explanation& e, const std::string& engine);

// The kernels of an explanation as a table.
std::string kernels_text(const Explanation& e);

// The variables that the storage layout of `e` should split and cannot; none if it splits all of them.
std::vector<Explanation::Warning> stored_whole(const Program& program, const GraphData& graph, const Explanation& e);

// Every variable and how it is stored; "" without a storage layout.
std::string stored_text(const Explanation& e);

// What a program that a whole-program compiler made needs besides its variables: other arguments, outputs that overwrite
// no argument, temporaries and code.
std::int64_t arena_bytes(const CompilerMemory& memory, std::int64_t variable_bytes);
// The rows of `explain` for such a program.
std::vector<std::vector<std::string>> compiler_rows(const Explanation& e);

std::vector<Explanation::Collective> collectives_of(const ProgramCost& cost);

std::string percent_text(double share);  // "12.3 %"

// Rows of cells under each other, two spaces between columns. From column `first_number` on cells stand to the right.
std::string table_text(const std::vector<std::vector<std::string>>& rows, const std::string& indent,
                       std::size_t first_number = std::string::npos);

// The collectives of an explanation as a table, the causes of each below it.
std::string collectives_text(const std::vector<Explanation::Collective>& collectives, bool causes);

}  // namespace weft
