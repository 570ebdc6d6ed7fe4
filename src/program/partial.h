// What a pending reduction may pass through before it is done: the law that place_reductions uses and verify enforces.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir.h"

namespace weft {

// Whether op(join of x) equals join of op(x), over processors, when exactly the operands marked in `pending` still wait
// for their `how` and all others are the same on those processors. So linear instructions for sums, monotone
// ones for max and min. A sum does not pass a cast to a narrower float: each part would be rounded.
bool lets_pass(const Instr& instr, Reduce how, const std::vector<bool>& pending);

// Per value, the axes along which processors may hold different contents though its sharding does not say so: what
// comes of axis_index, of a permute or of a relabelled shard. Bit i is axis i of the mesh.
std::vector<std::uint64_t> hidden_axes(const Program& program);

// Whether every loop that may stop does so on all processors at once.
bool loops_stop_together(const Program& program);

}  // namespace weft
