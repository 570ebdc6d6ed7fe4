// Where the values of a program lie on one processor.
#pragma once

#include <map>

#include "program/memory_plan.h"
#include "runtime/host/kernel.h"

namespace weft {

// The values in `held` lie where it says, the others where the plan puts them in the arena. A value that no instruction
// makes has no view.
ByValue<TensorView> place_values(const Program& program, const MemoryPlan& plan, ProcessorId processor,
                                 std::byte* arena, const std::map<ValueId, void*>& held);

}  // namespace weft
