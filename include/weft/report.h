// A page of HTML about a step: the choice and its prediction, how tensors lie on the mesh, memory and time over the step,
// what collectives move, and the candidates of a plan. It is one file, needs no network and no script, and prints well.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "weft/explain.h"
#include "weft/plan.h"
#include "weft/simulate.h"

namespace weft {

struct MeasuredStep {
  double seconds = 0;      // of a step, the median of those that were timed; 0: of the traced steps
  std::string device;      // that ran it
  std::string trace = {};  // what Executable::trace gave; empty: the page shows no measured timeline
};

struct StepReport {
  std::string title;                          // of the model
  Explanation compiled;                       // the step as compiled
  Simulation predicted;                       // of the same program
  std::optional<Plan> plan = {};              // the search that chose it
  std::optional<MeasuredStep> measured = {};  // the same step as it ran
  std::vector<std::string> show = {};         // tensors to draw on the mesh; empty: the largest of each shape

  std::string html() const;  // UserError for a tensor of `show` that the step does not have
  // The file is complete or as it was before. RunError if it cannot be written.
  void write(const std::string& path) const;
};

// RunError if a report cannot be written there: to be asked before a long run. Leaves nothing behind.
void check_report_path(const std::string& path);

}  // namespace weft
