// The instructions through which a pending reduction may pass: place_reductions uses this rule and verify enforces it.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir.h"

namespace weft {

// Whether op(join of x) equals join of op(x), over processors, when exactly the operands marked in `pending` still wait
// for their `how` and all others are the same on those processors. Equal as computed in the dtype at hand, for all
// numbers, NaN and infinities among them; sums of floats up to the order in which they are added.
//
// Max and min pass what is monotone. NaN wins every max and min, in kernels and in collectives, so a function must also
// keep NaN and make none: log and sqrt do (of negatives), x * 0 does (of infinities), x + y does where y may be
// infinite. So floats pass additions of finite literals and multiplications by positive ones, and no tensor. Integers
// wrap and pass neither, nor a cast to a dtype that does not hold them all.
//
// Sums pass what is linear. Integers wrap alike before and after, but not past a cast; floats pass no cast to a
// narrower float, which would round each part. A literal factor may use up an eighth of the dtype's exponents (4 in
// f16, 65536 in f32): a larger one could make infinities of opposite sign out of finite parts. A factor that is a
// tensor passes, as in a contraction: the product is a sum of products either way, and where it overflows depends on
// the order anyway.
bool lets_pass(const Instr& instr, Reduce how, const std::vector<bool>& pending);

// Per value, the axes along which processors may hold different contents though its sharding does not say so: what
// comes of axis_index, of a permute or of a relabelled shard. Bit i is axis i of the mesh.
ByValue<std::uint64_t> hidden_axes(const Program& program);

// Whether every loop that may stop does so on all processors at once.
bool loops_stop_together(const Program& program);

}  // namespace weft
