// Regrouping of sums; part of the pass place_reductions.
#pragma once

#include "program/passes/reduction_plan.h"

namespace weft {

// AR(a) + y + AR(b) becomes (AR(a) + AR(b)) + y, for a tree of add, subtract and negative whose inner values have no
// other use, where reducing the group once then costs less. Does one tree; says whether there was one.
bool regroup_sums(Program& program);

}  // namespace weft
