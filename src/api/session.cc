#include "weft/session.h"

#include <algorithm>

#include "api/compile.h"
#include "api/state.h"
#include "api/trace.h"
#include "base/clock.h"
#include "base/philox.h"
#include "base/str.h"
#include "language/graph_data.h"
#include "program/text.h"
#include "runtime/cuda/open.h"
#include "runtime/processor_names.h"
#include "weft/detail/activity.h"

namespace weft {

wire::Choice wire::threads() { return {"threads"}; }
wire::Choice wire::mpi() { return {"mpi"}; }
wire::Choice wire::nccl() { return {"nccl"}; }
device::Choice device::cpu() { return {"cpu"}; }
device::Choice device::reference() { return {"reference"}; }

device::Choice device::cuda() { return {"cuda"}; }
device::Choice device::xla(const std::string& plugin) { return {"xla", plugin}; }
std::vector<std::string> device::names() { return engine_names(); }

const SessionVariable& SessionState::variable(const std::string& name) const {
  const auto found = variables.find(name);
  if (found != variables.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, held] : variables) known.push_back(other);
  const std::string near = nearest_word(name, known);
  throw UserError({.code = "session.unknown-variable",
                   .what = str("the session holds no variable '", name, "'"),
                   .where = str("session on mesh ", mesh()),
                   .fix = near.empty() ? str("it holds: ", known.empty() ? "none yet" : join(known, ", "))
                                       : str("did you mean '", near, "'?")});
}

namespace {

std::unique_ptr<comm::Wire> wire_of(const wire::Choice& choice, const Mesh& mesh) {
  if (choice.name == "threads") return comm::make_threads_wire(mesh.size());
  if (choice.name == "mpi") return comm::make_mpi_wire();
  if (choice.name == wire::nccl().name) {
    if (!cuda_library().make_nccl_wire || !cuda_library().has_card)
      refuse_cuda(str("wire nccl of a session on mesh ", mesh));
    return cuda_library().make_nccl_wire(mesh.size());
  }
  throw UserError({.code = "session.unknown-wire",
                   .what = str("there is no wire '", choice.name, "'"),
                   .where = str("session on mesh ", mesh),
                   .fix = "use wire::threads(), wire::mpi() or wire::nccl()"});
}

void check_options(const Mesh& mesh, const SessionOptions& options) {
  const auto refuse = [&](ErrorCode code, bool is_wrong, const std::string& what, const std::string& fix) {
    if (is_wrong) throw UserError({.code = code, .what = what, .where = str("session on mesh ", mesh), .fix = fix});
  };
  refuse("session.bad-deadline", !(options.deadline_seconds > 0),
         str("processors cannot wait ", options.deadline_seconds, " s for each other"),
         "give SessionOptions::deadline_seconds a number above 0");
  refuse("session.bad-workers", options.workers < 0, str("a processor cannot have ", options.workers, " threads"),
         "give SessionOptions::workers a number of threads, or 0 for the engine's choice");
}

}  // namespace

Session SessionState::open(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
                           const SessionOptions& options) {
  check_options(mesh, options);
  return open(std::make_shared<Processors>(
                  mesh, std::move(wire), engine,
                  ProcessorOptions{.deadline_seconds = options.deadline_seconds, .workers = options.workers}),
              options);
}

Session SessionState::open(std::shared_ptr<Processors> processors, const SessionOptions& options) {
  auto state = std::make_shared<SessionState>();
  state->options = options;
  state->processors = std::move(processors);
  return Session(std::move(state));
}

Session::Session(const Mesh& mesh, const wire::Choice& wire, const device::Choice& device,
                 const SessionOptions& options) {
  if (!device.topology.empty())
    throw UserError({.code = "device.topology-without-dry-run",
                     .what = str("the devices of topology ", device.topology, " are not here to run on"),
                     .where = str("session on mesh ", mesh),
                     .fix = "add --dry-run, which compiles and runs nothing, or leave --topology out"});
  const bool over_nccl = device.over_nccl || wire.name == wire::nccl().name;
  const Engine& engine =
      engine_named(device.name, str("session on mesh ", mesh), device.plugin, device.nondeterministic, over_nccl);
  *this = SessionState::open(mesh, wire_of(wire, mesh), engine, options);
}

namespace {

// UserError if an earlier executable holds the variable otherwise.
void check_held(const SessionState& session, const Program& program, const ProgramVariable& variable) {
  const Value& value = program.values[variable.value];
  const Value& held = session.variables.at(variable.name).value;
  if (held.dtype == value.dtype && held.shape == value.shape && held.sharding == value.sharding) return;
  throw UserError(
      {.code = "session.variable-mismatch",
       .what = str("variable '", variable.name, "' is held as ", held.dtype, " ", held.shape, " ",
                   text_of(held.sharding, held.shape, session.mesh()), ", but this graph needs ", value.dtype, " ",
                   value.shape, " ", text_of(value.sharding, value.shape, session.mesh())),
       .where = str("layout \"", program.layout, "\", mesh ", session.mesh()),
       .fix = "compile with the layout and dtypes of the first executable, or make a new Session"});
}

// Gives a variable its memory and first values. Every processor makes its own shard: the whole is nowhere.
void hold(SessionState& session, const GraphData& graph, const Value& value, const std::string& name) {
  const Node& node = graph.nodes[graph.variable_nodes.at(name)];
  const VariableOptions& options = node.attrs.get<VariableOptions>("options");
  const bool is_slice =
      value.dtype == options.slice.value_or(options.stored);  // not so under CompileOptions::compute_as
  SessionVariable variable{session.processors->allocate(value), options.slot_of,
                           is_slice ? options.stored : value.dtype};
  session.processors->on_each([&](ProcessorId p) {
    session.processors->device(p).fill(variable.on(p), value, name, node.attrs.get<Init>("init"), session.options.seed);
  });
  session.variables.emplace(name, std::move(variable));
}

// All variables of the program that the session does not hold yet.
void hold_variables(SessionState& session, const GraphData& graph, const Program& program) {
  std::int64_t elements = 0;
  const auto is_new = [&](const ProgramVariable& v) { return !session.variables.contains(v.name); };
  const auto value_of = [&](const ProgramVariable& v) -> const Value& { return program.values[v.value]; };
  for (const ProgramVariable& variable : program.variables)
    if (is_new(variable)) elements += value_of(variable).shape.elements();
  const Activity activity("making initial values", elements);
  for (const ProgramVariable& variable : program.variables) {
    if (!is_new(variable)) {
      check_held(session, program, variable);
      continue;
    }
    hold(session, graph, value_of(variable), variable.name);
    Activity::add(value_of(variable).shape.elements());
  }
}

// Processes that compiled unlike programs would wait for each other or, worse, mix up what they send.
void check_agreement(SessionState& session, const Program& program) {
  if (session.processors->all_are_local()) return;
  const auto number = static_cast<std::int64_t>(seeded(hash_key(to_text(program), 0), session.options.seed));
  const std::vector<std::int64_t> all = session.processors->gather_numbers(1, "of the program's hash, Session::compile",
                                                                           [&](ProcessorId) { return &number; });
  const auto other = std::find_if(all.begin(), all.end(), [&](std::int64_t n) { return n != all[0]; });
  if (other == all.end()) return;
  const ProcessorId unlike(other - all.begin());
  throw UserError({.code = "session.programs-differ",
                   .what = str(processor_text(session.mesh(), unlike), " compiled another program than ",
                               processor_text(session.mesh(), ProcessorId(0)), ", or has another seed"),
                   .where = str("Session::compile, layout \"", program.layout, "\", mesh ", session.mesh()),
                   .fix = "let every process make the same calls in the same order, with the same graph, layout, "
                          "options and seed; none of them may depend on the process, its host or the time"});
}

}  // namespace

Executable Session::compile(const Graph& graph, const Layout& layout, const CompileOptions& options) {
  SessionState& session = *state_;
  session.processors->make_ready();
  auto state = std::make_shared<ExecutableState>(ExecutableState{.session = state_, .graph = graph.data()});
  const double begin = seconds_now();
  const Activity activity("compiling");
  const auto compiled = std::make_shared<const Compiled>(
      compile_program(graph, session.mesh(), layout, options, session.options.store, session.processors->engine()));
  const double planned = seconds_now();
  state->plan_seconds = planned - begin;
  state->fetch = options.fetch;
  check_agreement(session, compiled->program);
  hold_variables(session, *state->graph, compiled->program);
  std::vector<const VariableMemory*> variables;
  for (const ProgramVariable& v : compiled->program.variables) {
    variables.push_back(&session.variables.at(v.name));
    if (v.update) state->updated.push_back(&session.variables.at(v.name));
  }
  state->runner = std::make_shared<Runner>(session.processors, compiled, variables,
                                           Checks{options.check_finite, options.check_ids});
  state->bind_seconds = seconds_now() - planned;
  if (options.trace.steps > 0) trace_runs(*state, options.trace);
  return Executable(std::move(state));
}

Array Session::value(const std::string& variable) const {
  state_->processors->make_ready();
  return state_->processors->gather(state_->variable(variable), str("of variable '", variable, "', Session::value"));
}

void Session::set_value(const std::string& variable, const Array& value) {
  state_->processors->make_ready();
  SessionVariable& held = const_cast<SessionVariable&>(state_->variable(variable));
  const Shape whole = global_shape(held.value.shape, held.value.sharding, state_->mesh());
  if (!same_dims(whole, value.shape()))
    throw UserError({.code = "session.value-shape-mismatch",
                     .what = str("variable '", variable, "' ", whole, " cannot take values of shape ", value.shape()),
                     .where = "Session::set_value",
                     .fix = "give an array with the variable's dims"});
  ++held.changes;
  const bool fits =
      value.shape() == whole && value.dtype() == held.value.dtype;  // large ones are not copied for nothing
  if (fits) state_->processors->upload(value, held);
  else state_->processors->upload(value.transposed(whole).cast(held.value.dtype), held);
}

std::vector<std::string> Session::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, held] : state_->variables) names.push_back(name);
  return names;
}

const Mesh& Session::mesh() const { return state_->mesh(); }

}  // namespace weft
