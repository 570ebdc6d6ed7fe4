// A predicted step in the format of the traces of real runs.
#pragma once

#include <string>
#include <vector>

#include "plan/cost.h"

namespace weft {

// Chrome's trace events of one processor: its instructions on worker 0, collectives in flight on a lane of their own.
std::string trace_text(const Program& program, const Machine& machine, const std::vector<TimedInstr>& timeline,
                       const StepCost& cost);

}  // namespace weft
