// The trace of an executable: gathers the records of all processors and writes them as Chrome's trace events.
#include "api/trace.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/index.h"
#include "base/str.h"
#include "program/cost.h"
#include "weft/error.h"
#include "weft/explain.h"

namespace weft {

void trace_runs(ExecutableState& state, const TraceOptions& options) {
  const Processors& processors = *state.session->processors;
  std::int64_t steps = 0;  // a collective is two, if it comes to that
  visit_bodies(state.program(), [&](const Program& body, std::int64_t times) {
    steps += times * 2 * static_cast<std::int64_t>(body.body.size());
  });
  state.logs.resize(static_cast<std::size_t>(processors.mesh().size()));
  for (const ProcessorId p : processors.local()) {
    std::unique_ptr<TraceLog>& log = state.logs[p];
    log = std::make_unique<TraceLog>(processors.device(p).lanes(), steps, std::max<std::int64_t>(0, options.first),
                                     options.steps);
    state.runner->bound(p).trace_to(log.get());
  }
}

void note_call(ExecutableState& state, std::uint32_t run, std::int64_t begin) {
  if (state.logs.empty()) return;
  for (const ProcessorId p : state.session->processors->local()) {
    TraceLog& log = *state.logs[p];
    if (!log.covers(run)) continue;
    log.enter(run);
    log.add(TraceRecord::kCall, begin, state.session->processors->device(p).now());
  }
}

namespace {

using Json = nlohmann::ordered_json;

// What is said of every record of one bound step.
struct Described {
  std::string head;          // the beginning of its event, up to the times
  std::string args;          // the beginning of its arguments
  double least_seconds = 0;  // at the machine's roof
  bool has_roof = false;     // by itself: the two halves of a collective have it together
};

Described described(const std::string& name, const std::string& category, const Json& args, double least_seconds,
                    bool has_roof) {
  std::string inside = args.dump();
  inside.pop_back();  // the closing brace: more follows
  return {str("{\"name\":", Json(name).dump(), ",\"cat\":", Json(category).dump(), ",\"ph\":\"X\""), inside,
          least_seconds, has_roof};
}

Described described(const RunInstr& step, const Machine& machine) {
  const Instr& instr = *step.instr;
  const Cost cost = step.finishes ? Cost{} : cost_of(*step.program, instr);
  const std::vector<ValueId>& named = instr.outputs.empty() ? instr.inputs : instr.outputs;
  const std::string tensor = named.empty() ? "" : step.program->values[named[0]].name;
  const std::string phase = name_of(instr.origin.phase);
  const std::string kind = name_of(instr);
  const std::string use = instr.is<Loop>() ? "loop" : is_collective(instr) ? "collective" : "kernel";
  const double least = std::max(cost.flops / machine.peak(), cost.bytes / machine.bytes_per_second);
  return described(str(kind, step.finishes ? " done " : " ", tensor), phase,
                   {{"use", use},
                    {"kind", kind},
                    {"tensor", tensor},
                    {"phase", phase},
                    {"cause", join(instr.origin.causes, ", ")},
                    {"flops", cost.flops},
                    {"bytes", cost.bytes}},
                   least, use == "kernel" && least > 0);
}

Described described_other(std::int64_t what) {
  const std::string kind = what == TraceRecord::kCall ? "call" : what == TraceRecord::kProgram ? "program" : "commit";
  const bool works = what == TraceRecord::kCommit;
  return described(kind, works ? "update" : "step",
                   {{"use", works ? "kernel" : kind}, {"kind", kind}, {"tensor", ""}, {"phase", works ? "update" : ""}},
                   0, false);
}

// Writes events, one a line.
class Writer {
 public:
  Writer(const std::vector<RunInstr>& steps, const Machine& machine, std::int64_t zero) : zero_(zero) {
    for (const RunInstr& step : steps) steps_.push_back(described(step, machine));
    for (std::int64_t what = TraceRecord::kCommit; what < 0; ++what) others_.push_back(described_other(what));
  }

  void processor(ProcessorId processor, const std::string& name, const TraceLanes& lanes) {
    label("process_name", processor, 0, name);
    for (std::size_t w = 0; w < lanes.shares.size(); ++w) label("thread_name", processor, w, str("worker ", w));
    for (const TraceRecord& record : lanes.steps) event(record, processor, 0, false);
    for (std::size_t w = 0; w < lanes.shares.size(); ++w)
      for (const TraceRecord& record : lanes.shares[w]) event(record, processor, w, true);
  }

  std::string text() const { return join(events_, ",\n"); }

 private:
  void label(const char* what, ProcessorId processor, std::size_t worker, const std::string& name) {
    events_.push_back(str("{\"name\":\"", what, "\",\"ph\":\"M\",\"pid\":", processor, ",\"tid\":", worker,
                          ",\"args\":{\"name\":", Json(name).dump(), "}}"));
  }

  static std::string microseconds(std::int64_t nanoseconds) {
    return str(nanoseconds / 1000, ".", std::to_string(1000 + nanoseconds % 1000).substr(1));
  }

  void event(const TraceRecord& r, ProcessorId processor, std::size_t worker, bool share) {
    const Described& d = r.what < 0 ? others_[at(r.what - TraceRecord::kCommit)] : steps_[at(r.what)];
    const double seconds = static_cast<double>(r.end - r.begin) * 1e-9;
    std::string args = share ? str("{\"use\":\"share\",\"busy_us\":", microseconds(r.busy)) : d.args;
    args += str(",\"step\":", r.run);
    if (!share) args += str(",\"seconds\":", Json(seconds).dump());
    if (!share && d.least_seconds > 0) args += str(",\"least_us\":", Json(d.least_seconds * 1e6).dump());
    if (!share && d.has_roof) args += str(",\"roof\":", Json(seconds > 0 ? d.least_seconds / seconds : 1).dump());
    events_.push_back(str(d.head, ",\"ts\":", microseconds(r.begin - zero_), ",\"dur\":", microseconds(r.end - r.begin),
                          ",\"pid\":", processor, ",\"tid\":", worker, ",\"args\":", args, "}}"));
  }

  std::int64_t zero_;
  std::vector<Described> steps_, others_;  // others: from kCommit up
  std::vector<std::string> events_;
};

UserError untraced(const char* fix) {
  return UserError({.code = "trace.nothing-traced",
                    .what = "no run of this executable has been traced",
                    .where = "Executable::trace",
                    .fix = fix});
}

// The records of all processors, in every process.
Indexed<ProcessorId, TraceLanes> gathered_lanes(ExecutableState& state) {
  Processors& processors = *state.session->processors;
  if (state.logs.empty()) throw untraced("give CompileOptions::trace the number of steps");
  const TraceLog& mine = *state.logs[processors.first()];
  Indexed<ProcessorId, std::vector<std::int64_t>> packed(state.logs.size());
  for (const ProcessorId p : processors.local()) packed[p] = state.logs[p]->packed();
  const std::vector<std::int64_t> all = processors.gather_numbers(mine.numbers(), "of the trace, Executable::trace",
                                                                  [&](ProcessorId p) { return packed[p].data(); });
  Indexed<ProcessorId, TraceLanes> lanes;
  for (const ProcessorId p : packed.ids()) lanes.push_back(mine.unpacked(all.data() + p.number() * mine.numbers()));
  if (lanes.front().steps.empty()) throw untraced("run it past the step that CompileOptions::trace begins with");
  return lanes;
}

}  // namespace

std::string Executable::trace(const Machine& machine, const std::string& peaks) const {
  Processors& processors = *state_->session->processors;
  processors.make_ready();
  const Indexed<ProcessorId, TraceLanes> lanes = gathered_lanes(*state_);
  std::int64_t zero = std::numeric_limits<std::int64_t>::max();
  for (const TraceLanes& one : lanes)
    for (const TraceRecord& record : one.steps) zero = std::min(zero, record.begin);
  Writer writer(state_->runner->bound(processors.first()).instructions(), machine, zero);
  for (const ProcessorId p : lanes.ids()) {
    const std::string where =
        processors.mesh().axes().empty() ? "" : str(" (", coordinates_text(processors.mesh(), p), ")");
    writer.processor(p, str("processor ", p, where), lanes[p]);
  }
  const Json about = {{"weft_trace", 1},
                      {"mesh", processors.mesh().text()},
                      {"layout", state_->program().layout},
                      {"device", processors.engine().name()},
                      {"processors", processors.mesh().size()},
                      {"workers", lanes.front().shares.size()},
                      {"flops_per_second", machine.peak()},
                      {"bytes_per_second", machine.bytes_per_second},
                      {"peaks", peaks}};
  return str("{\"displayTimeUnit\":\"ms\",\n\"otherData\":", about.dump(), ",\n\"traceEvents\":[\n", writer.text(),
             "\n]}\n");
}

}  // namespace weft
