// The lines at the beginning of a run: what is trained, on what, and what is worth a warning.
#pragma once

#include <string>

#include "weft/config.h"
#include "weft/explain.h"

namespace weft::train {

// Without an end of line. `cores`: those that this process may use.
std::string run_header(const Config& config, const Explanation& plan, int cores);

}  // namespace weft::train
