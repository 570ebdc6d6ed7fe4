// For tests of memory plans on the card: WEFT_CUDA_POISON=1 fills every range of the arena with NaN (bytes 0xff) as soon as the
// plan says that nobody reads it any more. A kernel that reads it nevertheless shows as NaN.
#pragma once

#include <vector>

#include "program/memory_plan.h"

namespace weft::cuda {

bool wants_poison();  // the environment variable, "0" and nothing: no

// The storages that are read last after position `before` and not after `position`, in a body of `size` instructions,
// without those that share bytes with what still lives.
std::vector<Storage> dead_storages(const MemoryPlan& plan, int before, int position, int size);

}  // namespace weft::cuda
