// Seconds of a program on a machine: a time for every instruction, and how collectives overlap with computation.
#pragma once

#include <array>
#include <vector>

#include "plan/wire_cost.h"
#include "program/cost.h"
#include "program/ir.h"
#include "weft/machine.h"

namespace weft {

// One step on one processor; all processors do the same at once.
struct StepCost {
  double seconds = 0;  // of the step
  double compute = 0;  // in which the processor computes
  double wire = 0;     // in which its collectives run
  double exposed = 0;  // in which it waits for collectives
  double flops = 0;    // that it executes
};

// When an instruction runs. A collective with a done also has the wait of its done.
struct TimedInstr {
  const Program* program = nullptr;
  const Instr* instr = nullptr;
  double begin = 0, end = 0;  // seconds after the step's begin
};

// Prices the programs of one mesh on one machine: thousands of them, while a search goes on. The machine outlives it.
// UserError if the mesh has more processors than the machine. Not thread-safe: it keeps the links of groups.
class Pricer {
 public:
  Pricer(const Machine& machine, const Mesh& mesh);

  // The program has been through the passes; its mesh is the pricer's. `timeline`: takes every instruction in the order
  // of its begin, the body of a loop as often as it runs.
  StepCost price(const Program& program, std::vector<TimedInstr>* timeline = nullptr);

 private:
  struct Clock;
  class Touched;
  void run(const Program& program, Clock& clock);
  void run_loop(const Loop& loop, Clock& clock);
  double compute_seconds(const Program& program, const Instr& instr, const Cost& cost, double memory_seconds,
                         const ByValue<std::vector<std::int64_t>>& strides) const;
  double contract_seconds(const Program& program, const Instr& instr,
                          const ByValue<std::vector<std::int64_t>>& strides) const;
  double convolve_seconds(const Program& program, const Instr& instr) const;
  double product_seconds(DType dtype, const std::array<std::int64_t, 3>& sizes) const;
  double attend_seconds(const Program& program, const Instr& instr, double flops) const;
  double wire_seconds(const Program& program, const Instr& instr);

  const Machine& machine_;
  Mesh mesh_;
  const Rates& rates_;
  double crowding_;  // processors that take turns on a core
  struct Group {
    Axes axes;
    int size = 1;
    std::vector<Stage> stages;
  };
  const Group& group_of(const Axes& axes);
  std::vector<Group> groups_;  // that were asked for
};

StepCost price(const Program& program, const Machine& machine);

// The values that become the new contents of variables.
ByValue<bool> updates_of(const Program& program);

}  // namespace weft
