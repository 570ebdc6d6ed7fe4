// Folding inside one map; part of the pass fold.
#pragma once

#include <optional>
#include <vector>

#include "program/ir.h"

namespace weft {

// Writes known operands as literals (`known[i]` of operand i; null: unknown), computes what literals make, and takes out
// what changes nothing (x*1, x/1, x+0, x-0, -(-x), a cast to the same dtype). In post-order, only what is used.
// Functions that runtimes compute by approximation are left to them.
void fold_nodes(std::vector<MapNode>& nodes, const std::vector<const Number*>& known);

}  // namespace weft
