// Ops that work on complete lines along a dim (sort, take_along): what they do if the dim is split.
#pragma once

#include <string>
#include <vector>

#include "ops/rules.h"

namespace weft {

// The values with `dim` unsplit. Its axes move to another dim that all values have, so that the processors divide the
// lines. If no such dim divides, every processor gets all of `dim`. The results have the same shardings as each other.
std::vector<ValueId> with_whole_lines(Lowering& l, const std::string& dim, const std::vector<ValueId>& values);

}  // namespace weft
