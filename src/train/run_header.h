// The lines at the beginning of a run: what is trained, on what, and what is worth a warning.
#pragma once

#include <string>

#include "weft/config.h"
#include "weft/detail/doctor.h"
#include "weft/explain.h"

namespace weft::train {

// Without an end of line. `cores`: those that this process may use. UserError if the run cannot fit into the machine's memory.
std::string run_header(const Config& config, const Explanation& plan, int cores, const MachineMemory& machine);

// Of a run in f32 on a card: what bf16 between the variables would change, from the plans of both. "" where nothing is to
// be said. `planned`: of the config as it is.
std::string saved_by_bf16(const Config& config, const Explanation& planned, const Machine& machine);

}  // namespace weft::train
