// Running an executable: feeds in, one step on every processor, fetches out.
#include <iostream>
#include <limits>
#include <utility>

#include "api/explain_parts.h"
#include "api/state.h"
#include "api/trace.h"
#include "base/index.h"
#include "base/str.h"
#include "language/op_def.h"
#include "program/text.h"
#include "weft/detail/session_access.h"

namespace weft {

namespace {

// The array for one input, in its dim order and dtype. It is copied only if one of them differs.
Array fitted(const Program& program, const ProgramInput& input, Array given) {
  const Value& value = program.values[input.value];
  const Shape whole = global_shape(value.shape, value.sharding, program.mesh);
  const bool kinds_agree = is_float(given.dtype()) == is_float(value.dtype);
  if (!same_dims(whole, given.shape()) || !kinds_agree)
    throw UserError({.code = "run.input-mismatch",
                     .what = str("input '", input.name, "' is ", value.dtype, " ", whole, ", but ", given.dtype(), " ",
                                 given.shape(), " was given"),
                     .where = "Executable::run",
                     .fix = "give an array with the input's dims and kind of dtype"});
  if (given.shape() == whole && given.dtype() == value.dtype) return given;
  return given.transposed(whole).cast(value.dtype);
}

const std::string& input_name(const ExecutableState& state, const Tensor& tensor, const char* where) {
  if (!tensor || tensor.graph() != state.graph || state.graph->node(tensor.id()).op->name != "input")
    throw UserError(
        {.code = "run.not-an-input",
         .what = str(tensor ? str("'", tensor.name(), "'") : "an empty tensor", " is not an input of this graph"),
         .where = where,
         .fix = "give a tensor that Graph::input() made"});
  return state.graph->node(tensor.id()).attrs.get<std::string>("name");
}

// An input of the update was made by an optimizer, which knows its value.
std::string advice_on_missing(const ExecutableState& state, const std::string& name) {
  const auto found = state.graph->inputs.find(name);
  if (found != state.graph->inputs.end() && state.graph->nodes[found->second].phase == Phase::kUpdate)
    return "the optimizer made this input: add optimizer.feeds(step, rate) to the feeds";
  return "feed every input that the fetched tensors and updates stand on";
}

std::vector<Array> fitted_feeds(const ExecutableState& state, Feeds feeds) {
  std::map<std::string, Array*> given;
  for (auto& [tensor, array] : feeds) {
    const std::string& name = input_name(state, tensor, "Executable::run");
    if (!given.emplace(name, &array).second)
      throw UserError({.code = "run.input-fed-twice",
                       .what = str("input '", name, "' was fed twice"),
                       .where = "Executable::run",
                       .fix = "give one array for each input"});
  }
  std::vector<Array> arrays;
  for (const ProgramInput& input : state.program().inputs) {
    const auto found = given.find(input.name);
    if (found == given.end())
      throw UserError({.code = "run.input-missing",
                       .what = str("input '", input.name, "' was not given"),
                       .where = "Executable::run",
                       .fix = advice_on_missing(state, input.name)});
    arrays.push_back(fitted(state.program(), input, std::move(*found->second)));
  }
  return arrays;
}

}  // namespace

const Array& Values::operator[](const Tensor& x) const {
  for (const auto& [fetched, array] : arrays_)
    if (fetched == x) return array;
  throw UserError({.code = "run.not-fetched",
                   .what = str(x ? str("'", x.name(), "'") : "an empty tensor", " was not fetched"),
                   .where = "Values",
                   .fix = "name it in CompileOptions::fetch"});
}

double Values::scalar(const Tensor& x) const { return (*this)[x].item(); }

namespace {

// What the processors use in one run, and which one that hangs may outlive.
struct RunArrays {
  std::vector<Array> feeds, fetched;
  std::map<std::string, double> metrics = {};

  void take(const HostEvent& event, const SessionState& session) {
    if (event.what == "metric") metrics[event.text] = event.value.item();
    else if (session.processors->first() != ProcessorId(0)) return;  // the process of processor 0 prints
    else if (session.options.print) session.options.print(str(event.text, " ", event.value));
    else std::cout << event.text << " " << event.value << "\n";
  }
};

}  // namespace

struct RunState {
  std::shared_ptr<ExecutableState> executable;
  std::shared_ptr<RunArrays> arrays;
  std::shared_ptr<PendingStep> step;
};

PendingRun::~PendingRun() {
  if (state_) state_->step->end();
}

Values PendingRun::get() {
  if (!state_)
    throw UserError({.code = "run.results-read-twice",
                     .what = "the results of a step were read twice",
                     .where = "PendingRun::get",
                     .fix = "keep the result of the first call"});
  const std::shared_ptr<RunState> run = std::move(state_);
  run->step->finish();
  Values values;
  values.metrics_ = std::move(run->arrays->metrics);
  for (std::size_t i = 0; i < run->arrays->fetched.size(); ++i)
    values.arrays_.emplace_back(run->executable->fetch[i], std::move(run->arrays->fetched[i]));
  return values;
}

PendingRun Executable::start(Feeds feeds) {
  Processors& processors = *state_->session->processors;
  const Device& device = processors.device(processors.first());
  std::int64_t begin = device.now();
  const auto arrays = std::make_shared<RunArrays>(RunArrays{fitted_feeds(*state_, std::move(feeds)), {}});
  for (std::size_t i = 0; i < state_->fetch.size(); ++i)
    arrays->fetched.push_back(processors.room_for(state_->program().values[state_->program().outputs[i].value]));
  const bool waits = processors.has_pending_step();
  processors.make_ready();
  if (waits) begin = device.now();
  if (!std::exchange(state_->has_begun, true)) release_free_memory();
  const std::uint32_t number = state_->step, times = state_->session->times;
  for (SessionVariable* variable : state_->updated) variable->changes += times;
  state_->step += times;
  StepJob job{.args = {.seed = state_->session->options.seed, .step = number, .deadline = processors.deadline()},
              .times = times};
  job.args.host = [arrays, session = state_->session](const HostEvent& event) { arrays->take(event, *session); };
  job.feed = [arrays, runner = state_->runner.get()](ProcessorId p, BoundProgram&) { runner->feed(p, arrays->feeds); };
  job.fetch = [arrays, runner = state_->runner.get()](ProcessorId p, const BoundProgram&) {
    runner->fetch(p, arrays->fetched);
  };
  job.owner = state_->session;
  job.ended = [state = state_, number, begin](bool failed) {
    if (failed) state->step = number;  // it does not count
    else note_call(*state, number, begin);
  };
  return PendingRun(std::make_shared<RunState>(RunState{state_, arrays, state_->runner->start(std::move(job))}));
}

Values Executable::run(Feeds feeds) { return start(std::move(feeds)).get(); }

Values detail::run_times(Session& session, Executable& executable, std::int64_t times, Feeds feeds) {
  SessionState& state = SessionState::of(session);
  internal_check(times >= 1 && times < (1 << 30), "a run of so many steps");
  state.times = static_cast<std::uint32_t>(times);
  const std::unique_ptr<SessionState, void (*)(SessionState*)> reset(&state, [](SessionState* of) { of->times = 1; });
  return executable.run(std::move(feeds));
}

std::pair<std::int64_t, std::int64_t> Executable::local_range(const Tensor& input, const DimRef& dim) const {
  const std::string& name = input_name(*state_, input, "Executable::local_range");
  const std::optional<std::size_t> position = input.shape().find(dim.name());
  if (!position)
    throw UserError({.code = "run.unknown-dim-of-input",
                     .what = str("input '", name, "' ", input.shape(), " has no dim '", dim.name(), "'"),
                     .where = "Executable::local_range",
                     .fix = "name one of its dims"});
  std::pair<std::int64_t, std::int64_t> range{input.shape()[*position].size, 0};
  for (const ProgramInput& one : state_->program().inputs) {
    if (one.name != name) continue;
    const Value& value = state_->program().values[one.value];
    for (const ProcessorId p : state_->session->processors->local()) {
      const std::int64_t begin = shard_begin(value.shape, value.sharding, state_->program().mesh, p)[*position];
      range = {std::min(range.first, begin), std::max(range.second, begin + value.shape[*position].size)};
    }
  }
  return {std::min(range.first, range.second), range.second};
}

std::int64_t Executable::step() const { return state_->step; }

void Executable::set_step(std::int64_t step) {
  if (step < 0 || step > std::numeric_limits<std::uint32_t>::max())
    throw UserError({.code = "run.bad-step-number",
                     .what = str("there is no run number ", step),
                     .where = "Executable::set_step",
                     .fix = "give a number from 0 to 4294967295"});
  state_->step = static_cast<std::uint32_t>(step);
}

double Executable::plan_seconds() const { return state_->plan_seconds; }

double Executable::bind_seconds() const { return state_->bind_seconds; }

PlannedMemory Executable::memory() const {
  const Processors& processors = *state_->session->processors;
  const Compiled& compiled = state_->runner->compiled();
  if (const auto compiler = state_->runner->bound(processors.first()).compiler_memory())
    return {.variables = compiled.variable_bytes(), .arena = arena_bytes(*compiler, compiled.variable_bytes())};
  return {.variables = compiled.variable_bytes(),
          .arena = compiled.arena_bytes(),
          .workspaces = compiled.workspace_bytes(),
          .scratch = processors.device(processors.first()).allocated(MemoryUse::kScratch)};
}

std::string Executable::text() const { return to_text(state_->program()); }

}  // namespace weft
