// The input that many ops have in their samples.
#pragma once

#include "language/op_def.h"

namespace weft {

inline const Dim kSampleDim{"b", 12};
inline const SampleInput kSampleInput = uniform_input({{"a", 6}, kSampleDim, {"c", 2}});

}  // namespace weft
