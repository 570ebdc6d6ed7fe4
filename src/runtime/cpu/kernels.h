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

}  // namespace weft::cpu
