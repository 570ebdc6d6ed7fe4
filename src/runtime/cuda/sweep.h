// Sweeps: maps, reductions and fused bodies as generated kernels.
//
// A body's full shape is rows x columns (program/fusible.h). The first kernel walks over it:
//   flat    no reduction: a thread has some neighbouring elements
//   rows    a reduction joins columns: a team of threads has a whole row
//   tiles   reductions join rows only: a block has some columns and some rows
// Reductions over rows leave partial sums, one per team or block, in the workspace. Then one kernel each, where there is
// something to write, for results per row, per column and for scalars: it joins the partial sums in order. So every result
// is written by a thread that has read all it needs, and an output may lie where an operand did. No atomics: the bits are
// the same in every run.
#pragma once

#include "runtime/cuda/work.h"

namespace weft::cuda {

void sweep(const Work& work, const Program& body);  // of Work's operands and results
std::int64_t sweep_bytes(const Program& body);      // of partial sums

// A map or a reduction as the body of a sweep.
Program body_of_one(const Program& program, const Instr& instr);
bool can_sweep(const Program& body);

// The same elements, matched by name; a dim that `from` lacks is repeated.
void copy_elements(const Work& work, const TensorView& from, const TensorView& to);

}  // namespace weft::cuda
