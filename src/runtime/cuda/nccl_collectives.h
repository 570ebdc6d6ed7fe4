// Collectives with processors on other cards: operands are packed into blocks in rank order, NCCL moves or reduces the
// blocks, and results are unpacked. Needs nothing of NCCL but what Peers offers.
#pragma once

#include <cstdint>

#include "runtime/cuda/peers.h"
#include "runtime/cuda/work.h"

namespace weft::cuda {

// `work`: the instruction on this processor. Appends its work, for one stream.
void nccl_collective(const Work& work, Peers& peers);

// Bodies of kernels. Progress: of one thread, over "steps" and "number" of the progress words, and "value", a number.
extern const char* const kProgressText;
// Element i of `result`, "y", from everyone's block of its shape in "x", `step` blocks apart, the first at `first`.
std::string gathered_reduction_text(const TensorView& result, std::int64_t first, std::int64_t step, int members,
                                    Reduce how);

// See WorkspaceBytes.
std::int64_t nccl_collective_bytes(const Program& program, const Instr& instr,
                                   const ByValue<std::vector<std::int64_t>>& strides);

}  // namespace weft::cuda
