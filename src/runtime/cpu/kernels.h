// The fast kernels of one CPU: vectors, and workers that share an instruction's rows.
#pragma once

#include "runtime/backend.h"

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

}  // namespace weft::cpu
