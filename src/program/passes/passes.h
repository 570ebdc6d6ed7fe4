// The passes: free functions from program to program. Each preserves the results of the program (up to the order of
// sums), its inputs, variables, outputs and host calls. program/pipeline.cc lists them in order.
#pragma once

#include <cstdint>

#include "program/ir.h"

namespace weft {

struct PassOptions;

// Removes what no output, update or host call needs, members of joined collectives included.
// Needs: nothing. Keeps: the order of what is left; numbers values anew, in the order of their definition.
Program drop_dead_code(Program program, const PassOptions& options);

// Computes what is known now: literals through maps, x*1, x+0, idle casts, copies of what is dense already, views of
// views, collectives along axes of size 1. Needs: nothing. Keeps: the order; leaves unused instructions behind.
Program fold(Program program, const PassOptions& options);

// Instructions that do the same to the same operands become the first of them.
// Needs: nothing. Keeps: the order; host calls; does not merge what is recomputed with what was computed before.
Program merge_common(Program program, const PassOptions& options);

// Moves each all_reduce down to where the fewest bytes enter it, through what its reduction may pass, and regroups
// sums so that pending terms are reduced once; what a loop sums up is reduced after it.
// Needs: nothing. Keeps: the order of other instructions; ties stay put.
Program place_reductions(Program program, const PassOptions& options);

// An all_reduce of which each processor then uses its own block, perhaps under other names, becomes a reduce_scatter.
// Needs: unary all_reduces. Keeps: the order; what is pending along other axes is reduced after, on the smaller piece.
Program reduce_then_scatter(Program program, const PassOptions& options);

// An attend_back whose three results do nothing but lie one after another in a concat writes them there at once: so the
// derivative of a joined q, k and v is one value from the start.
// Needs: folded views. Keeps: the order; leaves values behind that nothing defines.
Program join_attend(Program program, const PassOptions& options);

// Orders the dims of what is computed and used inside the program alone so that contractions are the fewest products of
// matrices; what sweeps and attention make of such a value follows it. Outputs, updates and what travels stay.
// Needs: no fused. Keeps: the order of instructions; ties stay put.
Program choose_dim_orders(Program program, const PassOptions& options);

// Contractions of one operand with slices of one value that lie evenly apart become one, whose parts their results are:
// q, k and v from a variable that holds all three, say.
// Needs: folded views. Keeps: the order; the one stands where the first of them did. Leaves unused views behind.
Program join_siblings(Program program, const PassOptions& options);

// Joins all_reduces, and small reduce_scatters or all_gathers along one dim, of one group, kind, dtype and phase into
// one, up to options.join_limit bytes, to pay the latency once.
// Needs: nothing. Keeps: every member starts before its first use; the one starts where the last of its members did.
Program join_collectives(Program program, const PassOptions& options);

// A contraction of narrow floats whose result is only ever cast to f32 gives f32 itself: it has added up in f32 anyway. Not
// in training if a factor is a variable: activations, logits and their gradients stay narrow, and a gather from their cast
// picks before it casts. Needs: nothing. Keeps: the order.
Program widen_products(Program program, const PassOptions& options);

// An f32 contraction that is no product of matrices, since neither operand has dims of its own, becomes a
// multiplication and a sum, which fuse with what is around them. Only if the target fuses reductions. Needs: nothing. Keeps:
// the order.
Program contract_to_sum(Program program, const PassOptions& options);

// Sweeps of the backward pass compute again what maps made of one value before, instead of reading it: then that value is
// kept, which is no larger, and nothing that was made of it. What other instructions of the backward pass read is in memory
// anyway and stays. Only if the target fuses maps. Needs: merged common values. Keeps: the order; leaves unused maps behind.
Program recompute_maps(Program program, const PassOptions& options);

// Maps and reductions that hand values to each other, or read the same large operand, become one `fused` instruction if
// program/fusible.h can run them in one sweep. As options.target.fusing allows.
// Needs: no dones. Keeps: the order; a group stands where its last member did.
Program fuse(Program program, const PassOptions& options);

// Moves updates up to where all they read is known, so that gradients need not be kept to the end. What stands on a
// collective leaves it some work to do meanwhile.
// Needs: no dones. Keeps: the order otherwise; an update stays behind all that reads the variable.
Program hoist_updates(Program program, const PassOptions& options);

// Starts each collective as soon as its operands are there and finishes it right before the first use of what it gives,
// with a `done` of its own if there is work in between. What gathers a variable starts where the last one is first
// used. Needs: no dones. Keeps: the order of other work; views of what is in flight follow its done.
Program schedule_collectives(Program program, const PassOptions& options);

// Runs cheap work again behind the fullest place instead of keeping its result over it, until the arena is no larger
// than options.arena_limit (0: any). UserError if that cannot be. Needs: nothing. Keeps: the order; loops as they are.
Program recompute_for_memory(Program program, const PassOptions& options);

}  // namespace weft
