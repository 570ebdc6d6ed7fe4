#include "program/compiled.h"

#include <chrono>

namespace weft {

Compiled with_plan(Program program, const Target& target, std::vector<PassTime> times) {
  const auto begin = std::chrono::steady_clock::now();
  MemoryPlan plan = plan_memory(program, target.workspace_bytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  times.push_back({"memory plan", seconds.count()});
  return {std::move(program), std::move(plan), std::move(times)};
}

}  // namespace weft
