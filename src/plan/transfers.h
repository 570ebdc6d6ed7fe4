// The collectives of a simulated step: what they move and how long the processor waits for them.
#pragma once

#include <vector>

#include "plan/cost.h"
#include "weft/simulate.h"

namespace weft {

// By kind, group, phase and cause, the most bytes first. The waits sum to the exposed seconds of the step.
std::vector<Simulation::Transfer> transfers_of(const std::vector<TimedInstr>& timeline, const Machine& machine);

}  // namespace weft
