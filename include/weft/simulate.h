// simulate: the predicted step of a compiled program on a machine. Nothing is run, and the machine need not be here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/machine.h"

namespace weft {

// One step on one processor; all processors do the same at once. docs/machines.md says what the model leaves out.
struct Simulation {
  // The instructions of one kind and phase together.
  struct Part {
    std::string kind;   // "contract", …
    std::string phase;  // "forward", "recompute", "backward", "update"
    int count = 0;
    double seconds = 0;
  };
  // The collectives of one kind, group, phase and cause together.
  struct Transfer {
    std::string kind, axes;  // "all_reduce", "data+model"
    std::string phase;
    std::string cause;  // "file:line op"; several with ", " between them
    int count = 0;
    std::int64_t bytes = 0;                   // that enter
    double seconds = 0, exposed_seconds = 0;  // on the wire, and waited for
  };
  struct MemoryPoint {
    double seconds = 0;                // after the step's begin
    std::int64_t bytes = 0;            // of the arena in use from then on
    std::int64_t workspace_bytes = 0;  // of these: workspaces of kernels
  };

  std::string machine, mesh, layout;
  double seconds = 0;          // of the step
  double compute_seconds = 0;  // in which the processor computes
  double wire_seconds = 0;     // in which its collectives run
  double exposed_seconds = 0;  // in which it waits for them
  double flops = 0;            // that it executes
  double utilization = 0;      // time of its products at the peak of their dtype, without repeated ones, over seconds
  std::int64_t variable_bytes = 0, arena_bytes = 0;  // what a run allocates for variables and for everything else
  std::int64_t peak_bytes = 0;                       // the most of the arena in use at once
  std::int64_t memory_bytes = 0;                     // that the machine's processors have; 0: not known
  std::vector<Part> parts;                           // the longest first
  std::vector<Transfer> transfers;                   // the most bytes first
  std::vector<MemoryPoint> memory;                   // in time
  std::function<std::string()> trace;  // makes the JSON that Perfetto and weft trace-summary read: docs/bench.md

  std::string summary() const;  // for people
  std::string json() const;     // docs/machines.md lists the keys
};

// `program`: the text that Executable::text() and Explanation::program give. `device`: the engine whose memory plan is
// shown. UserError for a text that is not a program, and if the machine has too few processors.
Simulation simulate(const std::string& program, const Machine& machine, const std::string& device = "cpu");

}  // namespace weft
