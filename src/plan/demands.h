// The user's demands as the search takes them, and what to say if no candidate meets them.
#pragma once

#include "plan/search.h"
#include "weft/error.h"

namespace weft {

struct DemandSource {
  const PlanOptions& options;
  const SplitRules& rules;
  const Machine& machine;
  int processors = 1;
};

// UserError if the machine or the mesh has another number of processors.
void check_processors(const Machine& machine, int processors, const std::optional<Mesh>& mesh);

// UserError for demands that name what the graph, the mesh or the machine lacks.
Demands demands_of(const DemandSource& source);

// The error of a search that was stopped before it had a candidate that fits.
UserError nothing_found_yet(const DemandSource& source, const Demands& demands, double seconds);

// The error that names the smallest set of demands that no candidate meets together.
UserError nothing_fits(const DemandSource& source, const Demands& demands, const Found& found, Search& search);

}  // namespace weft
