// Kernels that all host engines have in common: collectives, values from nothing, and values for the host.
#pragma once

#include "runtime/host/kernel.h"
#include "runtime/host/strided.h"

namespace weft::host {

Kernel axis_index(const KernelArgs& args);
Kernel constant(const KernelArgs& args);
Kernel hand_over(const KernelArgs& args);  // of the instruction `host`
BoundCollective all_reduce(const KernelArgs& args);
BoundCollective reduce_scatter(const KernelArgs& args);
BoundCollective all_gather(const KernelArgs& args);
BoundCollective all_to_all(const KernelArgs& args);
BoundCollective permute(const KernelArgs& args);

// What collectives pack: see WorkspaceBytes. 0 for other instructions.
std::int64_t packing_bytes(const Program& program, const Instr& instr,
                           const std::vector<std::vector<std::int64_t>>& strides);

}  // namespace weft::host
