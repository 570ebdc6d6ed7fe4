// Ops that work on whole lines along a dim (sort, take_along): how they do it where the dim is split.
#pragma once

#include <string>
#include <vector>

#include "ops/rules.h"

namespace weft {

// The values with `dim` whole. Its axes go to another dim that all of them have, so that the lines are shared out
// between the processors; where no such dim divides, everyone gets all of `dim`. The results still lie alike.
std::vector<ValueId> with_whole_lines(Lowering& l, const std::string& dim, const std::vector<ValueId>& values);

}  // namespace weft
