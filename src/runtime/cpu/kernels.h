// The fast kernels of one CPU: vectors, and workers that share an instruction's rows.
#pragma once

#include <optional>
#include <string>

#include "runtime/host/kernel.h"

namespace weft::cpu {

Kernel contract(const KernelArgs& args);
Kernel attend(const KernelArgs& args);
Kernel attend_back(const KernelArgs& args);
Kernel fused(const KernelArgs& args);
Kernel map(const KernelArgs& args);
Kernel reduce(const KernelArgs& args);
Kernel copy(const KernelArgs& args);
Kernel concat(const KernelArgs& args);
Kernel take(const KernelArgs& args);
Kernel put(const KernelArgs& args);
Kernel gather(const KernelArgs& args);
Kernel scatter_add(const KernelArgs& args);
Kernel random(const KernelArgs& args);
Kernel scan(const KernelArgs& args);
Kernel sort(const KernelArgs& args);
Kernel convolve(const KernelArgs& args);
Kernel pool(const KernelArgs& args);

// What these need besides operands and results (WorkspaceBytes); none: the reference's kernel does it.
std::optional<std::int64_t> contract_bytes(const TensorView& x, const TensorView& y, const TensorView& out);
std::optional<std::int64_t> scatter_bytes(const TensorView& indices, const TensorView& updates, const TensorView& out,
                                          const std::string& dim);

}  // namespace weft::cpu
