// Folding inside one map; part of the pass fold.
#pragma once

#include <optional>
#include <vector>

#include "program/ir.h"

namespace weft {

// The nodes with known operands written as literals (`known[i]` of operand i; null: unknown), what literals make computed, and what
// changes nothing (x*1, x/1, x+0, x-0, -(-x), a cast to the same dtype) taken out. In post-order, only what is used.
// Functions that runtimes compute by approximation are left to them.
std::vector<MapNode> folded(std::vector<MapNode> nodes, const std::vector<const Number*>& known);

}  // namespace weft
