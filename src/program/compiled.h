// Compiled: a program and its memory on one engine. It is made once per executable and is the same for every processor:
// explain prints it, devices bind it, and the sum of its parts is what a processor allocates.
#pragma once

#include <cstdint>
#include <vector>

#include "program/memory_plan.h"
#include "program/pipeline.h"

namespace weft {

struct Compiled {
  Program program;
  MemoryPlan plan;                   // of values and of the workspaces of all instructions
  std::vector<PassTime> times = {};  // of the partitioner, each pass and the memory plan

  std::int64_t arena_bytes() const { return plan.arena_bytes; }
  std::int64_t workspace_bytes() const;  // the most of the arena that workspaces have at once
  std::int64_t variable_bytes() const { return weft::variable_bytes(program); }
  std::int64_t bytes() const { return arena_bytes() + variable_bytes(); }
};

// Plans the memory of a program whose passes have run, for this engine.
Compiled with_plan(Program program, const Target& target, std::vector<PassTime> times = {});

}  // namespace weft
