// Running an executable: feeds in, one step on every processor, fetches out.
#include <iostream>
#include <limits>

#include "api/print_text.h"
#include "api/shards.h"
#include "api/state.h"
#include "api/trace.h"
#include "base/str.h"
#include "language/op_def.h"
#include "program/text.h"

namespace weft {

namespace {

const Value& value_of(const Program& program, ValueId id) { return program.values[static_cast<std::size_t>(id)]; }

// The array for one input, in its dim order and dtype.
Array fitted(const Program& program, const ProgramInput& input, const Array& given) {
  const Value& value = value_of(program, input.value);
  const Shape whole = global_shape(value.shape, value.sharding, program.mesh);
  const bool kinds_agree = is_float(given.dtype()) == is_float(value.dtype);
  if (!same_dims(whole, given.shape()) || !kinds_agree)
    throw UserError({.what = str("input '", input.name, "' is ", value.dtype, " ", whole, ", but ", given.dtype(), " ",
                                 given.shape(), " was given"),
                     .where = "Executable::run",
                     .fix = "give an array with the input's dims and kind of dtype"});
  return given.transposed(whole).cast(value.dtype);
}

const std::string& input_name(const ExecutableState& state, const Tensor& tensor, const char* where) {
  if (!tensor || tensor.graph() != state.graph || state.graph->node(tensor.id()).op->name != "input")
    throw UserError(
        {.what = str(tensor ? str("'", tensor.name(), "'") : "an empty tensor", " is no input of this graph"),
         .where = where,
         .fix = "give what Graph::input() made"});
  return state.graph->node(tensor.id()).attrs.get<std::string>("name");
}

// An input of the update was made by an optimizer, which knows its value.
std::string advice_on_missing(const ExecutableState& state, const std::string& name) {
  const auto found = state.graph->inputs.find(name);
  if (found != state.graph->inputs.end() &&
      state.graph->nodes[static_cast<std::size_t>(found->second)].phase == Phase::kUpdate)
    return "the optimizer made this input: add optimizer.feeds(step, rate) to the feeds";
  return "feed every input that the fetched tensors and updates stand on";
}

std::vector<Array> fitted_feeds(const ExecutableState& state, const Feeds& feeds) {
  std::map<std::string, const Array*> given;
  for (const auto& [tensor, array] : feeds) {
    const std::string& name = input_name(state, tensor, "Executable::run");
    if (!given.emplace(name, &array).second)
      throw UserError({.what = str("input '", name, "' was fed twice"),
                       .where = "Executable::run",
                       .fix = "give one array for each input"});
  }
  std::vector<Array> arrays;
  for (const ProgramInput& input : state.program.inputs) {
    const auto found = given.find(input.name);
    if (found == given.end())
      throw UserError({.what = str("input '", input.name, "' was not given"),
                       .where = "Executable::run",
                       .fix = advice_on_missing(state, input.name)});
    arrays.push_back(fitted(state.program, input, *found->second));
  }
  return arrays;
}

}  // namespace

const Array& Values::operator[](const Tensor& x) const {
  for (const auto& [fetched, array] : arrays_)
    if (fetched == x) return array;
  throw UserError({.what = str(x ? str("'", x.name(), "'") : "an empty tensor", " was not fetched"),
                   .where = "Values",
                   .fix = "name it in CompileOptions::fetch"});
}

double Values::scalar(const Tensor& x) const { return (*this)[x].item(); }

// What the processors use in one run, which a processor that hangs may outlive.
struct RunState {
  std::shared_ptr<ExecutableState> state;
  std::vector<Array> feeds;
  RunContext context = {};
  std::vector<Array> fetched = {};
  std::map<std::string, double> metrics = {};
  std::int64_t begin = 0;  // of the call, for the trace
  bool is_over = false;
  std::exception_ptr failure = {};

  void take(const HostEvent& event) {
    const SessionState& session = *state->session;
    if (event.what == "metric") metrics[event.text] = event.value.item();
    else if (session.here[0] != 0) return;  // the process of processor 0 prints
    else if (session.options.print) session.options.print(print_text(event.text, event.value));
    else std::cout << print_text(event.text, event.value) << "\n";
  }

  // Results are handed out before the next step can overwrite them.
  void on(int processor) {
    const Program& program = state->program;
    BoundProgram& bound = *state->bound[static_cast<std::size_t>(processor)];
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const ValueId id = program.inputs[i].value;
      copy_to_shard(feeds[i], value_of(program, id), program.mesh, processor, bound.data(id));
    }
    bound.run(context);
    for (std::size_t i = 0; i < fetched.size(); ++i) {
      const ValueId id = program.outputs[i].value;
      const Value& value = value_of(program, id);
      state->session->gather_on(processor, value, bound.output(id), str("of '", value.name, "', a fetched tensor"),
                                fetched[i]);
    }
  }

  void end() {
    is_over = true;
    state->session->running.reset();
    try {
      state->session->end_step([&](int p) { return state->bound[static_cast<std::size_t>(p)]->doing(); });
      note_call(*state, context.step, begin);
    } catch (...) {
      failure = std::current_exception();
      state->step = context.step;  // it does not count
    }
  }
};

void finish(RunState& step) {
  if (!step.is_over) step.end();
  if (step.failure) std::rethrow_exception(step.failure);
}

PendingRun::~PendingRun() {
  if (state_ && !state_->is_over) state_->end();
}

Values PendingRun::get() {
  if (!state_)
    throw UserError({.what = "the results of a step were asked for a second time",
                     .where = "Running::get",
                     .fix = "keep what the first call returns"});
  const std::shared_ptr<RunState> step = std::move(state_);
  finish(*step);
  Values values;
  values.metrics_ = std::move(step->metrics);
  for (std::size_t i = 0; i < step->fetched.size(); ++i)
    values.arrays_.emplace_back(step->state->fetch[i], std::move(step->fetched[i]));
  return values;
}

PendingRun Executable::start(const Feeds& feeds) {
  SessionState& session = *state_->session;
  const std::int64_t begin = TraceLog::now();
  const auto step = std::make_shared<RunState>(RunState{.state = state_, .feeds = fitted_feeds(*state_, feeds)});
  for (std::size_t i = 0; i < state_->fetch.size(); ++i)
    step->fetched.push_back(session.room_for(value_of(state_->program, state_->program.outputs[i].value)));
  const bool waits = !session.running.expired();
  session.make_ready();
  step->begin = waits ? TraceLog::now() : begin;
  step->context = {.seed = session.options.seed,
                   .step = state_->step++,
                   .deadline = session.deadline(),
                   .host = [run = step.get()](const HostEvent& event) { run->take(event); },
                   .host_processor = session.here[0]};
  session.running = step;
  session.threads->begin([step](int processor) { step->on(processor); });
  return PendingRun(step);
}

Values Executable::run(const Feeds& feeds) { return start(feeds).get(); }

std::pair<std::int64_t, std::int64_t> Executable::local_range(const Tensor& input, const std::string& dim) const {
  const std::string& name = input_name(*state_, input, "Executable::local_range");
  const std::optional<std::size_t> at = input.shape().find(dim);
  if (!at)
    throw UserError({.what = str("input '", name, "' ", input.shape(), " has no dim '", dim, "'"),
                     .where = "Executable::local_range",
                     .fix = "name one of its dims"});
  std::pair<std::int64_t, std::int64_t> range{input.shape()[*at].size, 0};
  for (const ProgramInput& one : state_->program.inputs) {
    if (one.name != name) continue;
    const Value& value = value_of(state_->program, one.value);
    for (const int p : state_->session->here) {
      const std::int64_t begin = shard_begin(value.shape, value.sharding, state_->program.mesh, p)[*at];
      range = {std::min(range.first, begin), std::max(range.second, begin + value.shape[*at].size)};
    }
  }
  return {std::min(range.first, range.second), range.second};
}

std::int64_t Executable::step() const { return state_->step; }

void Executable::set_step(std::int64_t step) {
  if (step < 0 || step > std::numeric_limits<std::uint32_t>::max())
    throw UserError({.what = str("there is no run number ", step),
                     .where = "Executable::set_step",
                     .fix = "give a number from 0 to 4294967295"});
  state_->step = static_cast<std::uint32_t>(step);
}

double Executable::compile_seconds() const { return state_->compile_seconds; }

std::string Executable::text() const { return to_text(state_->program); }

}  // namespace weft
