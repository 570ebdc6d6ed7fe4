#include "plan/transfers.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/str.h"
#include "layout/sharding.h"

namespace weft {

namespace {

// What a collective gives, in a program.
using Given = std::pair<const Program*, ValueId>;

std::set<Given> waited_for(const std::vector<TimedInstr>& timeline) {
  std::set<Given> all;
  for (const TimedInstr& timed : timeline)
    if (timed.instr->is<Done>()) all.emplace(timed.program, timed.instr->inputs[0]);
  return all;
}

}  // namespace

std::vector<Simulation::Transfer> transfers_of(const std::vector<TimedInstr>& timeline, const Machine& machine) {
  using Key = std::tuple<std::string, std::string, Phase, std::string>;
  std::map<Key, Simulation::Transfer> sums;
  std::map<Given, Simulation::Transfer*> started;
  const std::set<Given> has_done = waited_for(timeline);
  double now = 0;  // of the compute stream
  for (const TimedInstr& timed : timeline) {
    const Instr& instr = *timed.instr;
    if (instr.is<Loop>()) continue;  // the timeline has its body
    if (!is_collective(instr)) {
      if (instr.is<Done>()) started.at({timed.program, instr.inputs[0]})->exposed_seconds += timed.end - timed.begin;
      now = timed.end;
      continue;
    }
    const std::string axes = text_of(axes_of(instr), timed.program->mesh);
    Simulation::Transfer& sum = sums[{name_of(instr), axes, instr.origin.phase, join(instr.origin.causes, ", ")}];
    ++sum.count;
    sum.bytes += static_cast<std::int64_t>(cost_of(*timed.program, instr).bytes);
    sum.seconds += timed.end - timed.begin;
    const Given given(timed.program, instr.outputs[0]);
    started[given] = &sum;
    if (machine.overlaps && has_done.contains(given)) continue;
    sum.exposed_seconds += std::max(0.0, timed.end - now);
    now = std::max(now, timed.end);
  }
  std::vector<Simulation::Transfer> all;
  for (auto& [key, sum] : sums) {
    std::tie(sum.kind, sum.axes, std::ignore, sum.cause) = key;
    sum.phase = name_of(std::get<Phase>(key));
    all.push_back(std::move(sum));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return all;
}

}  // namespace weft
