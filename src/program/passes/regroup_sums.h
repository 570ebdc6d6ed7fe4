// Regrouping of sums; part of the pass place_reductions.
#pragma once

#include "program/passes/reduction_plan.h"

namespace weft {

// AR(a) + y + AR(b) becomes (AR(a) + AR(b)) + y, for a tree of add, subtract and negative whose inner values have no
// other use, where reducing the group once then costs less. Says whether there was one. The plans are of the program as it is.
bool regroup_sums(Program& program, const ReductionPlans& plans);

}  // namespace weft
