// Moves the reductions of sums that a loop accumulates behind the loop; part of the pass place_reductions.
#pragma once

#include "program/ir.h"

namespace weft {

// A carried value that starts at zero and to which every trip adds the result of an all_reduce carries the pending sum
// instead; the all_reduce follows the loop. True if anything changed.
bool sink_from_loops(Program& program);

}  // namespace weft
