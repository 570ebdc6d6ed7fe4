// The data that a loop op keeps about its body: its attribute "body", a std::shared_ptr<LoopBody>.
#pragma once

#include <string>
#include <vector>

#include "language/region.h"

namespace weft {

struct LoopBody {
  Region region;
  std::int64_t trips = 0;
  bool stops = false;
  std::size_t carried = 0, sums = 0, kept = 0;
  TensorId index;                  // i64 scalar
  std::vector<TensorId> given;     // the carried values at the start of an iteration
  std::vector<TensorId> results;   // next carried values, addends of the sums, values to keep, the stop condition
  std::vector<TensorId> captures;  // from outside
  std::vector<TensorType> types;   // of the results
  std::string history;             // the dim along which carried values are kept
  double flops = 0;                // of one iteration

  // Outputs: carried, sums, kept, and the carried values at the start of every iteration, which the gradient needs.
  std::size_t starts() const { return stops ? 0 : carried; }
  std::size_t first_kept() const { return carried + sums; }
  std::size_t first_start() const { return carried + sums + kept; }
};

}  // namespace weft
