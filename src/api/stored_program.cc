#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "base/str.h"
#include "program/verify.h"
#include "runtime/host/initial.h"
#include "runtime/runner.h"
#include "weft/detail/doctor.h"
#include "weft/error.h"
#include "weft/detail/stored_program.h"

namespace weft {

struct StoredProgram::State {
  std::shared_ptr<const Compiled> compiled;  // for the first of the engines
  std::vector<Slot> inputs, variables, outputs;
  std::int64_t bytes = 0;

  const Program& program() const { return compiled->program; }
  const Value& value(ValueId id) const { return program().values[id]; }
  Slot slot(const std::string& name, ValueId id) const {
    return {name, value(id).dtype, global_shape(value(id).shape, value(id).sharding, program().mesh)};
  }
};

namespace {

// One thread each: beyond this no machine of ours gives threads.
constexpr int kMostProcessors = 1024;
// Beyond this the sum of all values could overflow, and no machine holds it anyway.
constexpr __int128 kMostBytes = __int128{1} << 60;

__int128 bytes_of(const Shape& shape, DType dtype) {
  __int128 bytes = static_cast<__int128>(size_of(dtype));
  for (const Dim& dim : shape) bytes *= dim.size;  // a local shape has at most 2^44 elements, a mesh 2^16 processors
  return bytes;
}

UserError too_big(const std::string& what) {
  return UserError({.code = "program.too-large",
                    .what = str("the program needs ", what),
                    .where = "program text",
                    .fix = "make the program from smaller sizes, or run it on a machine with more memory"});
}

// Before the memory is planned: sums of sizes must not overflow.
void check_bytes(const Program& program) {
  __int128 values = 0;
  for (const Value& v : program.values) values += bytes_of(v.shape, v.dtype);
  if (values > kMostBytes) throw too_big("more than 2^60 bytes on each processor");
}

// What inputs, outputs and variables have on the host, and all processors together.
std::int64_t bytes_of_run(const Compiled& compiled) {
  const Program& program = compiled.program;
  __int128 host = 0;
  const auto whole = [&](ValueId id) {
    const Value& v = program.values[id];
    return bytes_of(global_shape(v.shape, v.sharding, program.mesh), v.dtype);
  };
  for (const ProgramInput& input : program.inputs) host += whole(input.value);
  for (const ProgramOutput& output : program.outputs) host += whole(output.value);
  for (const ProgramVariable& variable : program.variables) host += whole(variable.value);
  const __int128 all = host + static_cast<__int128>(program.mesh.size()) * compiled.bytes();
  if (all > kMostBytes) throw too_big("more than 2^60 bytes on all processors");
  return static_cast<std::int64_t>(all);
}

// Only reductions make a whole of what is pending, and the host has none.
void check_whole(const Value& value, const std::string& what) {
  if (value.sharding.is_partial())
    throw UserError({.code = "program.partial-storage",
                     .what = str(what, " is partial: a ", value.sharding.pending, " is pending"),
                     .where = "program text",
                     .fix = "write inputs and variables of a program without a pending reduction"});
}

Array random_value(const StoredProgram::Slot& slot, std::uint64_t seed) {
  if (slot.dtype == DType::kBool)
    return initial_value(slot.name, init::uniform(0, 2), slot.shape, DType::kU8, seed).cast(DType::kBool);
  const Init init = is_float(slot.dtype) ? init::uniform(-1, 1) : init::uniform(0, 10);
  return initial_value(slot.name, init, slot.shape, slot.dtype, seed);
}

using Slots = std::vector<StoredProgram::Slot>;

void check_values(const Slots& inputs, const Slots& variables, const std::map<std::string, Array>& values) {
  std::map<std::string, const StoredProgram::Slot*> slots;
  for (const Slots* all : {&inputs, &variables})
    for (const StoredProgram::Slot& slot : *all) slots.emplace(slot.name, &slot);
  for (const auto& [name, array] : values) {
    const auto found = slots.find(name);
    if (found == slots.end()) {
      std::vector<std::string> known;
      for (const auto& [other, slot] : slots) known.push_back(other);
      const std::string near = nearest_word(name, known);
      throw UserError({.code = "program.unknown-input",
                       .what = str("the program has no input or variable '", name, "'"),
                       .where = "StoredProgram::run",
                       .fix = near.empty() ? str("it has: ", known.empty() ? "none" : join(known, ", "))
                                           : str("did you mean '", near, "'?")});
    }
    const StoredProgram::Slot& slot = *found->second;
    if (!same_dims(slot.shape, array.shape()) || is_float(slot.dtype) != is_float(array.dtype()))
      throw UserError({.code = "program.input-mismatch",
                       .what = str("'", name, "' is ", slot.dtype, " ", slot.shape, " in the program, but ",
                                   array.dtype(), " ", array.shape(), " was given"),
                       .where = "StoredProgram::run",
                       .fix = "give an array with these dims and this kind of dtype"});
  }
}

void check_all_given(const Slots& inputs, const std::map<std::string, Array>& values) {
  std::vector<std::string> missing;
  for (const StoredProgram::Slot& input : inputs)
    if (!values.contains(input.name)) missing.push_back(str(input.name, " ", input.dtype, " ", input.shape));
  if (!missing.empty())
    throw UserError({.code = "program.inputs-missing",
                     .what = str("inputs are missing: ", join(missing, ", ")),
                     .where = "StoredProgram::run",
                     .fix = "give a value for each (weft run --inputs), or let all be random (--random-inputs SEED)"});
}

// One run: the processors, the memory of the variables and the program on them.
class Run {
 public:
  Run(const std::shared_ptr<const Compiled>& compiled, const Engine& engine, const StoredRunOptions& options)
      : compiled_(compiled),
        options_(options),
        processors_(std::make_shared<Processors>(compiled->program.mesh,
                                                 comm::make_threads_wire(compiled->program.mesh.size()), engine,
                                                 ProcessorOptions{.deadline_seconds = options.deadline_seconds})) {
    for (const ProgramVariable& variable : program().variables)
      variables_->push_back(processors_->allocate(value_of(variable.value)));
  }

  void set_variable(std::size_t v, const Array& whole) { processors_->upload(whole, (*variables_)[v]); }

  // What kernels refuse is the text's fault: the compiler never writes it.
  void bind() try {
    std::vector<const VariableMemory*> variables;
    for (const VariableMemory& variable : *variables_) variables.push_back(&variable);
    runner_ = std::make_shared<Runner>(processors_, compiled_, variables);
  } catch (const InternalError& error) {
    throw UserError({.code = "program.no-kernels",
                     .what = str("the program cannot be bound to kernels: ", error.text().what),
                     .where = "program text",
                     .fix = "compare the text with the output of weft explain --program"});
  }

  // The outputs are written to `outputs`.
  std::map<std::string, double> step(std::uint32_t number, const std::vector<Array>& inputs,
                                     std::vector<Array>& outputs) {
    const auto metrics = std::make_shared<std::map<std::string, double>>();
    const auto fetched = std::make_shared<std::vector<Array>>();
    for (const ProgramOutput& output : program().outputs)
      fetched->push_back(processors_->room_for(value_of(output.value)));
    StepJob job{.args = {.seed = options_.seed, .step = number, .deadline = processors_->deadline()}};
    job.args.host = [metrics, print = options_.print](const HostEvent& event) {
      if (event.what == "metric" && event.value.elements() == 1) (*metrics)[event.text] = event.value.item();
      else if (print) print(str(event.text, " ", event.value));
      else std::cout << event.text << " " << event.value << "\n";
    };
    job.feed = [inputs, runner = runner_.get()](ProcessorId p, BoundProgram&) { runner->feed(p, inputs); };
    job.fetch = [fetched, runner = runner_.get()](ProcessorId p, const BoundProgram&) { runner->fetch(p, *fetched); };
    job.owner = variables_;
    runner_->start(std::move(job))->finish();
    outputs = std::move(*fetched);
    return *metrics;
  }

  Array variable(std::size_t v) const { return processors_->gather((*variables_)[v], "of a variable"); }

 private:
  const Program& program() const { return compiled_->program; }
  const Value& value_of(ValueId id) const { return program().values[id]; }

  const std::shared_ptr<const Compiled> compiled_;
  const StoredRunOptions& options_;
  const std::shared_ptr<Processors> processors_;
  const std::shared_ptr<std::vector<VariableMemory>> variables_ = std::make_shared<std::vector<VariableMemory>>();
  std::shared_ptr<Runner> runner_;
};

}  // namespace

StoredProgram StoredProgram::parse(std::string_view text) {
  auto state = std::make_shared<State>();
  Program parsed = parse_verified(text);
  check_bytes(parsed);
  state->compiled = std::make_shared<const Compiled>(with_plan(std::move(parsed), engines().front()->target()));
  const Program& program = state->program();
  for (const ProgramInput& input : program.inputs) {
    check_whole(state->value(input.value), str("input '", input.name, "'"));
    state->inputs.push_back(state->slot(input.name, input.value));
  }
  for (const ProgramVariable& variable : program.variables) {
    check_whole(state->value(variable.value), str("variable '", variable.name, "'"));
    state->variables.push_back(state->slot(variable.name, variable.value));
  }
  for (const ProgramOutput& output : program.outputs) state->outputs.push_back(state->slot(output.name, output.value));
  state->bytes = bytes_of_run(*state->compiled);
  return StoredProgram(std::move(state));
}

StoredProgram StoredProgram::load(const std::string& path) {
  const bool is_folder = std::filesystem::is_directory(path);
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(is_folder ? nullptr : file.rdbuf()), {}};
  if (is_folder || !file)
    throw UserError({.code = "program.unreadable-file",
                     .what = str("cannot read the program '", path, "'"),
                     .where = path,
                     .fix = "give the path of a text that weft explain --program has written"});
  try {
    return parse(text);
  } catch (const UserError& error) {
    throw UserError({.code = error.text().code,
                     .what = error.text().what,
                     .where = str(path, ": ", error.text().where.text),
                     .fix = error.text().fix});
  }
}

const Mesh& StoredProgram::mesh() const { return state_->program().mesh; }
int StoredProgram::instructions() const { return static_cast<int>(state_->program().body.size()); }
const std::vector<StoredProgram::Slot>& StoredProgram::inputs() const { return state_->inputs; }
const std::vector<StoredProgram::Slot>& StoredProgram::variables() const { return state_->variables; }
const std::vector<StoredProgram::Slot>& StoredProgram::outputs() const { return state_->outputs; }
std::int64_t StoredProgram::bytes() const { return state_->bytes; }

StoredRunResults StoredProgram::run(const std::map<std::string, Array>& values, const StoredRunOptions& options) const {
  const Program& program = state_->program();
  check_values(inputs(), variables(), values);
  if (!options.random_inputs) check_all_given(inputs(), values);
  if (options.steps < 1)
    throw UserError({.code = "program.bad-steps",
                     .what = str("a run of ", options.steps, " steps was asked for"),
                     .where = "StoredProgram::run",
                     .fix = "run at least one step"});
  if (program.mesh.size() > kMostProcessors)
    throw UserError({.code = "program.too-many-processors",
                     .what = str("the program is for ", program.mesh.size(), " processors, each a thread here"),
                     .where = str("mesh ", program.mesh),
                     .fix = str("make the program for at most ", kMostProcessors, " processors")});
  const std::int64_t most = options.most_bytes > 0 ? options.most_bytes : machine_memory().total;
  if (bytes() > most) throw too_big(str(bytes(), " bytes, but ", most, " are all there is"));

  const auto value_for = [&](const Slot& slot, std::optional<std::uint64_t> seed) {
    const auto given = values.find(slot.name);
    if (given != values.end()) return given->second.transposed(slot.shape).cast(slot.dtype);
    return random_value(slot, *seed);
  };
  Run run(state_->compiled, *engines().front(), options);
  for (std::size_t v = 0; v < variables().size(); ++v)
    if (options.random_variables || values.contains(variables()[v].name))
      run.set_variable(v, value_for(variables()[v], options.random_variables));
  std::vector<Array> arrays;
  for (const Slot& input : inputs()) arrays.push_back(value_for(input, options.random_inputs));
  run.bind();
  StoredRunResults results;
  std::vector<Array> fetched;
  for (int step = 0; step < options.steps; ++step)
    results.metrics.push_back(run.step(static_cast<std::uint32_t>(step), arrays, fetched));
  for (std::size_t i = 0; i < outputs().size(); ++i)
    results.outputs.emplace_back(outputs()[i].name, std::move(fetched[i]));
  for (std::size_t v = 0; v < variables().size(); ++v) results.variables.emplace(variables()[v].name, run.variable(v));
  return results;
}

}  // namespace weft
