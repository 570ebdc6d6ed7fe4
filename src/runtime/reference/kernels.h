// The reference kernels: slow, readable, f64-capable; the oracle that faster backends are held to.
#pragma once

#include <functional>
#include <memory>

#include "runtime/engine.h"
#include "runtime/strided.h"

namespace weft::reference {

Kernel map(const KernelArgs& args);
Kernel contract(const KernelArgs& args);
Kernel reduce(const KernelArgs& args);
Kernel copy(const KernelArgs& args);
Kernel concat(const KernelArgs& args);
Kernel take(const KernelArgs& args);
Kernel put(const KernelArgs& args);
Kernel gather(const KernelArgs& args);
Kernel scatter_add(const KernelArgs& args);
Kernel scan(const KernelArgs& args);
Kernel sort(const KernelArgs& args);
Kernel convolve(const KernelArgs& args);
Kernel pool(const KernelArgs& args);
Kernel attend(const KernelArgs& args);
Kernel attend_back(const KernelArgs& args);
Kernel random(const KernelArgs& args);
Kernel axis_index(const KernelArgs& args);
Kernel constant(const KernelArgs& args);
Kernel host(const KernelArgs& args);
BoundCollective all_reduce(const KernelArgs& args);
BoundCollective reduce_scatter(const KernelArgs& args);
BoundCollective all_gather(const KernelArgs& args);
BoundCollective all_to_all(const KernelArgs& args);
BoundCollective permute(const KernelArgs& args);

// See WorkspaceBytes: what contract and scatter_add keep wide, and what collectives pack.
std::int64_t workspace_bytes(const Program& program, const Instr& instr,
                             const std::vector<std::vector<std::int64_t>>& strides);

}  // namespace weft::reference
