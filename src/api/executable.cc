// Running an executable: feeds in, one step on every processor, fetches out.
#include <iostream>
#include <mutex>

#include "api/printed.h"
#include "api/shards.h"
#include "api/state.h"
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

Values Executable::run(const Feeds& feeds) {
  ExecutableState& state = *state_;
  SessionState& session = *state.session;
  session.check_usable();
  const Program& program = state.program;
  const std::vector<Array> arrays = fitted_feeds(state, feeds);
  Values values;
  RunContext context{.seed = session.options.seed, .step = state.step};
  context.deadline = std::chrono::duration<double>(session.options.deadline_seconds);
  context.host = [&](const HostEvent& event) {
    if (event.what == "metric") values.metrics_[event.text] = event.value.item();
    else if (session.options.print) session.options.print(printed(event.text, event.value));
    else std::cout << printed(event.text, event.value) << "\n";
  };
  try {
    session.crew->run([&](int p) {
      BoundProgram& bound = *state.bound[static_cast<std::size_t>(p)];
      for (std::size_t i = 0; i < arrays.size(); ++i) {
        const ValueId id = program.inputs[i].value;
        copy_to_shard(arrays[i], value_of(program, id), program.mesh, p, bound.data(id));
      }
      bound.run(context);
    });
  } catch (const Error& error) {
    session.failure = error.text().what;
    throw;
  }
  ++state.step;
  for (std::size_t i = 0; i < program.outputs.size(); ++i) {
    const ValueId id = program.outputs[i].value;
    values.arrays_.emplace_back(state.fetch[i], session.gathered(value_of(program, id), [&](int p) {
      return state.bound[static_cast<std::size_t>(p)]->output(id);
    }));
  }
  return values;
}

std::string Executable::text() const { return to_text(state_->program); }

}  // namespace weft
