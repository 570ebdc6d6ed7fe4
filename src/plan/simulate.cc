#include "weft/simulate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/index.h"
#include "base/str.h"
#include "plan/cost.h"
#include "plan/trace.h"
#include "plan/transfers.h"
#include "program/attend.h"
#include "program/compiled.h"
#include "program/cost.h"
#include "program/text.h"
#include "weft/detail/target.h"

namespace weft {

namespace {

// What the lazy trace needs.
struct Simulated {
  Program program;
  Machine machine;
  std::vector<TimedInstr> timeline;
  StepCost cost;
};

// Seconds of all products at the peak of their dtype.
double peak_seconds(const Program& program, const Machine& machine) {
  double seconds = 0;
  visit_bodies(program, [&](const Program& body, std::int64_t times) {
    for (const Instr& instr : body.body) {
      const bool multiplies = instr.is<Contract>() || instr.is<Convolve>() || attend_rules(instr);
      if (!multiplies || instr.origin.recompute) continue;
      const double flops = cost_of(body, instr).flops * static_cast<double>(times);
      seconds += flops / machine.peak(body.values[instr.inputs[0]].dtype);
    }
  });
  return seconds;
}

std::vector<Simulation::Part> parts_of(const std::vector<TimedInstr>& timeline) {
  std::map<std::pair<std::string, Phase>, Simulation::Part> sums;
  for (const TimedInstr& timed : timeline) {
    if (timed.instr->is<Loop>() || timed.instr->is<Done>()) continue;
    Simulation::Part& part = sums[{name_of(*timed.instr), timed.instr->origin.phase}];
    part.kind = name_of(*timed.instr);
    part.phase = name_of(timed.instr->origin.phase);
    ++part.count;
    part.seconds += timed.end - timed.begin;
  }
  std::vector<Simulation::Part> parts;
  for (auto& [key, part] : sums) parts.push_back(std::move(part));
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return parts;
}

// The arena in use while each instruction of the outermost body runs; a loop has its body's arena as one piece.
std::vector<Simulation::MemoryPoint> memory_of(const Simulated& simulated, const MemoryPlan& plan) {
  const std::size_t size = simulated.program.body.size();
  std::vector<std::int64_t> change(size + 2, 0), workspace(size + 2, 0);
  for (const Storage& storage : plan.storages) {
    change[at(std::max(0, storage.first))] += storage.bytes;
    change[at(std::min<int>(static_cast<int>(size), storage.last) + 1)] -= storage.bytes;
  }
  for (const auto& [position, storage] : plan.workspaces) workspace[at(position)] = plan.storages[at(storage)].bytes;
  for (const auto& [position, inner] : plan.loops) {
    change[at(position)] += inner.plan[0].arena_bytes;
    change[at(position) + 1] -= inner.plan[0].arena_bytes;
  }
  std::vector<Simulation::MemoryPoint> points;
  std::map<const Instr*, double> begins;
  for (const TimedInstr& timed : simulated.timeline) begins.emplace(timed.instr, timed.begin);
  std::int64_t bytes = 0;
  double now = 0;
  for (std::size_t i = 0; i < size; ++i) {
    bytes += change[i];
    const auto found = begins.find(&simulated.program.body[i]);
    if (found != begins.end()) now = std::max(now, found->second);
    const Simulation::MemoryPoint point{now, bytes, workspace[i]};
    if (points.empty() || points.back().bytes != point.bytes || points.back().workspace_bytes != point.workspace_bytes)
      points.push_back(point);
  }
  return points;
}

std::string milliseconds(double seconds) { return str(std::round(seconds * 1e6) / 1e3, " ms"); }

std::string megabytes(std::int64_t bytes) { return str(std::round(static_cast<double>(bytes) * 1e-4) / 1e2, " MB"); }

std::string percent(double share) { return str(std::round(share * 1e3) / 10, " %"); }

}  // namespace

Simulation simulate(const std::string& program, const Machine& machine, const std::string& device) {
  const auto simulated = std::make_shared<Simulated>();
  simulated->program = parse_program(program);
  simulated->machine = machine;
  const Program& p = simulated->program;
  simulated->cost = Pricer(machine, p.mesh).price(p, &simulated->timeline);
  const MemoryPlan plan = plan_memory(p, engine_target(device));
  const StepCost& cost = simulated->cost;
  Simulation s;
  s.machine = machine.name;
  s.mesh = p.mesh.text();
  s.layout = p.layout;
  s.seconds = cost.seconds;
  s.compute_seconds = cost.compute;
  s.wire_seconds = cost.wire;
  s.exposed_seconds = cost.exposed;
  s.flops = cost.flops;
  s.utilization = cost.seconds > 0 ? peak_seconds(p, machine) / cost.seconds : 0;
  s.variable_bytes = variable_bytes(p);
  s.arena_bytes = plan.arena_bytes;
  s.peak_bytes = plan.live_bytes;
  s.memory_bytes = machine.memory_bytes;
  s.parts = parts_of(simulated->timeline);
  s.transfers = transfers_of(simulated->timeline, machine);
  s.memory = memory_of(*simulated, plan);
  s.trace = [simulated] {
    return trace_text(simulated->program, simulated->machine, simulated->timeline, simulated->cost);
  };
  return s;
}

std::string Simulation::summary() const {
  const std::int64_t bytes = variable_bytes + arena_bytes;
  std::string text = str("step        ", milliseconds(seconds), " predicted on ", machine, ", mesh ",
                         mesh.empty() ? "of one processor" : mesh, "\n", "compute     ", milliseconds(compute_seconds),
                         ", ", percent(utilization), " of the peak in products\n", "collectives ",
                         milliseconds(wire_seconds), ", of which ", milliseconds(exposed_seconds), " are exposed\n",
                         "memory      ", megabytes(bytes), " a processor: variables ", megabytes(variable_bytes),
                         ", arena ", megabytes(arena_bytes), ", of which ", megabytes(peak_bytes), " in use at once");
  if (memory_bytes > 0 && bytes > memory_bytes) text += str("; more than the ", megabytes(memory_bytes), " it has");
  text += "\n\n";
  for (const Part& part : parts) {
    const double share = seconds > 0 ? part.seconds / seconds : 0;
    text += str("  ", part.kind, " ", part.phase, ": ", part.count, " in ", milliseconds(part.seconds), ", ",
                percent(share), "\n");
  }
  return text;
}

std::string Simulation::json() const {
  using Json = nlohmann::ordered_json;
  Json list = Json::array(), moved = Json::array(), points = Json::array();
  for (const Part& part : parts)
    list.push_back({{"kind", part.kind}, {"phase", part.phase}, {"count", part.count}, {"seconds", part.seconds}});
  for (const Transfer& t : transfers)
    moved.push_back({{"kind", t.kind},
                     {"axes", t.axes},
                     {"phase", t.phase},
                     {"cause", t.cause},
                     {"count", t.count},
                     {"bytes", t.bytes},
                     {"seconds", t.seconds},
                     {"exposed_seconds", t.exposed_seconds}});
  for (const MemoryPoint& point : memory) points.push_back({point.seconds, point.bytes, point.workspace_bytes});
  return Json{{"machine", machine},
              {"mesh", mesh},
              {"layout", layout},
              {"seconds", seconds},
              {"compute_seconds", compute_seconds},
              {"wire_seconds", wire_seconds},
              {"exposed_seconds", exposed_seconds},
              {"flops", flops},
              {"utilization", utilization},
              {"variable_bytes", variable_bytes},
              {"arena_bytes", arena_bytes},
              {"peak_bytes", peak_bytes},
              {"memory_bytes", memory_bytes},
              {"parts", list},
              {"transfers", moved},
              {"memory", points}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace weft
