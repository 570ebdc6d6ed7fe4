// The fast kernels of one CPU: vectors, and workers that share an instruction's rows.
#pragma once

#include "runtime/host/kernel_table.h"

namespace weft::cpu {

KernelTable& kernels();

}  // namespace weft::cpu
