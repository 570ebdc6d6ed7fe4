// Running an executable: feeds in, one step on every processor, fetches out.
#include <iostream>
#include <limits>

#include "api/printed.h"
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

std::vector<Array> fitted_feeds(const ExecutableState& state, const Feeds& feeds) {
  std::map<std::string, const Array*> given;
  for (const auto& [tensor, array] : feeds) {
    if (!tensor || tensor.graph() != state.graph || state.graph->node(tensor.id()).op->name != "input")
      throw UserError({.what = str(tensor ? str("'", tensor.name(), "'") : "an empty tensor",
                                   " was fed, but it is no input of this graph"),
                       .where = "Executable::run",
                       .fix = "feed what Graph::input() made"});
    const std::string& name = state.graph->node(tensor.id()).attrs.get<std::string>("name");
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
                       .fix = "feed every input that the fetched tensors and updates stand on"});
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

namespace {

// What the processors use in one run, which a processor that hangs may outlive.
struct Run {
  std::shared_ptr<ExecutableState> state;
  std::vector<Array> feeds;
  RunContext context = {};
  std::map<std::string, double> metrics = {};

  void take(const HostEvent& event) {
    const SessionState& session = *state->session;
    if (event.what == "metric") metrics[event.text] = event.value.item();
    else if (session.here[0] != 0) return;  // the process of processor 0 prints
    else if (session.options.print) session.options.print(printed(event.text, event.value));
    else std::cout << printed(event.text, event.value) << "\n";
  }

  void on(int processor) const {
    const Program& program = state->program;
    BoundProgram& bound = *state->bound[static_cast<std::size_t>(processor)];
    for (std::size_t i = 0; i < feeds.size(); ++i) {
      const ValueId id = program.inputs[i].value;
      copy_to_shard(feeds[i], value_of(program, id), program.mesh, processor, bound.data(id));
    }
    bound.run(context);
  }
};

}  // namespace

Values Executable::run(const Feeds& feeds) {
  SessionState& session = *state_->session;
  session.check_usable();
  const std::int64_t begin = state_->logs.empty() ? 0 : TraceLog::now();
  const auto run = std::make_shared<Run>(Run{.state = state_, .feeds = fitted_feeds(*state_, feeds)});
  run->context = {.seed = session.options.seed,
                  .step = state_->step,
                  .deadline = session.deadline(),
                  .host = [run = run.get()](const HostEvent& event) { run->take(event); },
                  .host_processor = session.here[0]};
  session.step_everywhere([run](int processor) { run->on(processor); },
                          [run](int p) { return run->state->bound[static_cast<std::size_t>(p)]->doing(); });
  ++state_->step;
  Values values;
  values.metrics_ = std::move(run->metrics);
  for (std::size_t i = 0; i < state_->fetch.size(); ++i) {
    const ValueId id = state_->program.outputs[i].value;
    const Value& value = value_of(state_->program, id);
    values.arrays_.emplace_back(state_->fetch[i],
                                session.gathered(value, str("of '", value.name, "', a fetched tensor"), [&](int p) {
                                  return state_->bound[static_cast<std::size_t>(p)]->output(id);
                                }));
  }
  note_call(*state_, begin);
  return values;
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
