// The fast kernels of one CPU: vectors, and workers that share an instruction's rows.
#pragma once

#include "runtime/backend.h"

namespace weft::cpu {

Kernel contract(const KernelArgs& args);

}  // namespace weft::cpu
