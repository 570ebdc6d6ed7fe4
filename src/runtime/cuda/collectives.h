// Collectives among processors of one card: kernels that read the operands of a group and write its results.
#pragma once

#include "runtime/cuda/work.h"

namespace weft::cuda {

// `works`: the instruction on every processor of the mesh.
void collective(const std::vector<Work>& works);

}  // namespace weft::cuda
