#include "program/compiled.h"

#include <algorithm>
#include <chrono>

#include "base/index.h"

namespace weft {

namespace {

std::int64_t most_workspace(const MemoryPlan& plan) {
  int end = 0;
  for (const Storage& storage : plan.storages) end = std::max(end, storage.last + 1);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(end) + 1, 0);
  for (const auto& [position, storage] : plan.workspaces) {
    const Storage& s = plan.storages[at(storage)];
    for (int i = s.first; i <= s.last; ++i) bytes[at(i)] += s.bytes;
  }
  for (const auto& [position, inner] : plan.loops) bytes[at(position)] += most_workspace(inner.plan[0]);
  return *std::max_element(bytes.begin(), bytes.end());
}

}  // namespace

std::int64_t Compiled::workspace_bytes() const { return most_workspace(plan); }

Compiled with_plan(Program program, const Target& target, std::vector<PassTime> times) {
  const auto begin = std::chrono::steady_clock::now();
  MemoryPlan plan = plan_memory(program, target);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  times.push_back({"memory plan", seconds.count()});
  return {std::move(program), std::move(plan), std::move(times)};
}

}  // namespace weft
