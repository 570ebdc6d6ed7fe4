#include "plan/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "program/cost.h"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;
constexpr auto kReplace = Json::error_handler_t::replace;  // a path need not be UTF-8

constexpr int kComputes = 0, kWire = 1;  // lanes

Json label(const char* what, int lane, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 0}, {"tid", lane}, {"args", {{"name", name}}}};
}

Json event(const std::string& name, const std::string& category, double begin, double end, int lane, Json args) {
  args["step"] = 0;
  args["seconds"] = end - begin;
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", begin * 1e6},
          {"dur", (end - begin) * 1e6},
          {"pid", 0},
          {"tid", lane},
          {"args", std::move(args)}};
}

Json event(const TimedInstr& timed, const Machine& machine) {
  const Program& p = *timed.program;
  const Instr& instr = *timed.instr;
  const bool is_done = instr.is<Done>(), is_wire = is_collective(instr);
  const Cost cost = instr.is<Loop>() ? Cost{} : cost_of(p, instr);
  const std::vector<ValueId>& named = instr.outputs.empty() ? instr.inputs : instr.outputs;
  const std::string tensor = named.empty() ? "" : p.values[named[0]].name;
  const std::string kind = name_of(instr), phase = name_of(instr.origin.phase);
  const std::string use = instr.is<Loop>() ? "loop" : is_wire || is_done ? "collective" : "kernel";
  const double least = std::max(cost.flops / machine.peak(), cost.bytes / machine.bytes_per_second);
  Json args = {{"use", use},
               {"kind", kind},
               {"tensor", tensor},
               {"phase", phase},
               {"cause", join(instr.origin.causes, ", ")},
               {"flops", cost.flops},
               {"bytes", cost.bytes}};
  if (least > 0) args["least_us"] = least * 1e6;
  return event(str(kind, " ", tensor), phase, timed.begin, timed.end, is_wire ? kWire : kComputes, std::move(args));
}

}  // namespace

std::string trace_text(const Program& program, const Machine& machine, const std::vector<TimedInstr>& timeline,
                       const StepCost& cost) {
  const Json about = {{"weft_trace", 1},
                      {"mesh", program.mesh.text()},
                      {"layout", program.layout},
                      {"device", machine.name},
                      {"processors", 1},  // all do the same
                      {"workers", 1},
                      {"flops_per_second", machine.peak()},
                      {"bytes_per_second", machine.bytes_per_second},
                      {"peaks", "predicted"}};
  std::vector<std::string> events = {
      label("process_name", 0, str("each processor of ", machine.name)).dump(-1, ' ', false, kReplace),
      label("thread_name", kComputes, "computes").dump(), label("thread_name", kWire, "collectives in flight").dump()};
  for (const char* kind : {"call", "program"})
    events.push_back(
        event(kind, "step", 0, cost.seconds, kComputes, {{"use", kind}, {"kind", kind}, {"tensor", ""}, {"phase", ""}})
            .dump());
  for (const TimedInstr& timed : timeline) events.push_back(event(timed, machine).dump());
  return str("{\"displayTimeUnit\":\"ms\",\n\"otherData\":", about.dump(-1, ' ', false, kReplace),
             ",\n\"traceEvents\":[\n", join(events, ",\n"), "\n]}\n");
}

}  // namespace weft
