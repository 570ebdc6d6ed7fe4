// Collectives with processors on other cards: operands are packed into blocks in rank order, NCCL moves or reduces the
// blocks, and results are unpacked. Needs nothing of NCCL but what Peers offers.
#pragma once

#include <cstdint>

#include "runtime/cuda/peers.h"
#include "runtime/cuda/work.h"

namespace weft::cuda {

// `work`: the instruction on this processor. Appends its work, for one stream.
void nccl_collective(const Work& work, Peers& peers);

// See WorkspaceBytes.
std::int64_t nccl_collective_bytes(const Program& program, const Instr& instr,
                                   const ByValue<std::vector<std::int64_t>>& strides);

}  // namespace weft::cuda
