#include "weft/session.h"

#include <algorithm>
#include <atomic>

#include "api/compile.h"
#include "api/shards.h"
#include "api/state.h"
#include "base/philox.h"
#include "base/str.h"
#include "language/graph_data.h"
#include "program/text.h"
#include "runtime/strided.h"
#include "api/trace.h"
#include "weft/activity.h"

namespace weft {

wire::Choice wire::threads() { return {"threads"}; }
wire::Choice wire::mpi() { return {"mpi"}; }
device::Choice device::cpu() { return {"cpu"}; }
device::Choice device::reference() { return {"reference"}; }

void SessionState::make_ready() {
  if (const std::shared_ptr<RunState> step = running.lock()) finish(*step);
  if (!failure.empty())
    throw RunError({.what = str("this session is unusable since a run failed: ", failure),
                    .where = str("session on mesh ", mesh),
                    .fix = "make a new Session"});
}

const SessionVariable& SessionState::variable(const std::string& name) const {
  const auto found = variables.find(name);
  if (found != variables.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, held] : variables) known.push_back(other);
  const std::string near = nearest_word(name, known);
  throw UserError({.what = str("the session holds no variable '", name, "'"),
                   .where = str("session on mesh ", mesh),
                   .fix = near.empty() ? str("it holds: ", known.empty() ? "none yet" : join(known, ", "))
                                       : str("did you mean '", near, "'?")});
}

Array SessionState::gathered(const Value& value, const std::string& what,
                             const std::function<const void*(int)>& shard) {
  Array whole = room_for(value);
  const auto gather = [&](int p) { gather_on(p, value, shard(p), what, whole); };
  if (gatherers.empty()) std::for_each(here.begin(), here.end(), gather);
  else on_local_processors(gather);
  return whole;
}

Array SessionState::room_for(const Value& value) const {
  return Array(global_shape(value.shape, value.sharding, mesh), value.dtype);
}

void SessionState::gather_on(int processor, const Value& value, const void* shard, const std::string& what,
                             Array& whole) {
  const auto p = static_cast<std::size_t>(processor);
  if (!gatherers.empty()) gatherers[p]->gather(value, shard, processor == here[0] ? &whole : nullptr, what, deadline());
  else if (is_primary_shard(value, mesh, processor)) copy_from_shard(shard, value, mesh, processor, whole);
}

namespace {

std::unique_ptr<comm::Wire> wire_of(const wire::Choice& choice, const Mesh& mesh) {
  if (choice.name == "threads") return comm::make_threads_wire(mesh.size());
  if (choice.name == "mpi") return comm::make_mpi_wire();
  throw UserError({.what = str("there is no wire '", choice.name, "'"),
                   .where = str("session on mesh ", mesh),
                   .fix = "use wire::threads() or wire::mpi()"});
}

void check_size(const comm::Wire& wire, const Mesh& mesh) {
  if (wire.size() == mesh.size()) return;
  const auto are = [](int n, const char* one, const char* many) { return str(n, " ", n == 1 ? one : many); };
  throw UserError({.what = str("mesh ", mesh.axes().empty() ? "\"\"" : mesh.text(), " has ",
                               are(mesh.size(), "processor", "processors"), ", but mpirun started ",
                               are(wire.size(), "process", "processes")),
                   .where = "Session, wire::mpi()",
                   .fix = str("run `mpirun -n ", mesh.size(), " …`, or choose a mesh of ", wire.size())});
}

}  // namespace

Session SessionState::open(const Mesh& mesh, std::unique_ptr<comm::Wire> wire, const Engine& engine,
                           const SessionOptions& options) {
  check_size(*wire, mesh);
  auto state = std::make_shared<SessionState>();
  state->mesh = mesh;
  state->options = options;
  state->wire = std::move(wire);
  state->here = state->wire->local();
  state->engine = &engine;
  state->workers = make_workers(*state->wire, engine, options.workers);
  state->threads = std::make_unique<ProcessorThreads>(state->here);
  if (static_cast<int>(state->here.size()) < mesh.size()) {
    state->gatherers.resize(static_cast<std::size_t>(mesh.size()));
    state->on_local_processors([&](int p) {
      state->gatherers[static_cast<std::size_t>(p)] = std::make_unique<Gatherer>(state->mesh, *state->wire, p);
    });
  }
  return Session(std::move(state));
}

Session::Session(const Mesh& mesh, const wire::Choice& wire, const device::Choice& device,
                 const SessionOptions& options) {
  *this = SessionState::open(mesh, wire_of(wire, mesh), engine_named(device, str("session on mesh ", mesh)), options);
}

namespace {

void store(SessionState& session, SessionVariable& held, const Array& whole) {
  session.on_local_processors([&](int p) {
    copy_to_shard(whole, held.value, session.mesh, p, held.shards[static_cast<std::size_t>(p)].data());
  });
}

// UserError if an earlier executable holds the variable otherwise.
void check_held(const SessionState& session, const Program& program, const ProgramVariable& variable) {
  const Value& value = program.values[static_cast<std::size_t>(variable.value)];
  const Value& held = session.variables.at(variable.name).value;
  if (held.dtype == value.dtype && held.shape == value.shape && held.sharding == value.sharding) return;
  throw UserError({.what = str("variable '", variable.name, "' is held as ", held.dtype, " ", held.shape, " ",
                               text_of(held.sharding, held.shape, session.mesh), ", but this graph wants ", value.dtype,
                               " ", value.shape, " ", text_of(value.sharding, value.shape, session.mesh)),
                   .where = str("layout \"", program.layout, "\", mesh ", session.mesh),
                   .fix = "compile with the layout and dtypes of the first executable, or make a new Session"});
}

// Gives a variable its memory and first values. Every processor makes its own shard: the whole is nowhere.
void hold(SessionState& session, const GraphData& graph, const Value& value, const std::string& name) {
  const Node& node = graph.nodes[static_cast<std::size_t>(graph.variable_nodes.at(name))];
  const Init& init = node.attrs.get<Init>("init");
  SessionVariable held{.value = value,
                       .shards = std::vector<comm::Arena>(static_cast<std::size_t>(session.mesh.size())),
                       .slot_of = node.attrs.get<VariableOptions>("options").slot_of};
  const std::size_t bytes = static_cast<std::size_t>(value.shape.elements()) * size_of(value.dtype);
  session.on_local_processors([&](int p) {
    comm::Arena& shard = held.shards[static_cast<std::size_t>(p)];
    shard = session.wire->allocate(p, bytes);
    TensorView view = dense_view(shard.data(), value.dtype, value.shape);
    view.begin = shard_begin(value.shape, value.sharding, session.mesh, p);
    const Shape whole = global_shape(value.shape, value.sharding, session.mesh);
    for (std::size_t d = 0; d < whole.rank(); ++d) view.whole[d] = whole[d].size;
    fill_initial(view, name, init, session.options.seed, *session.workers[static_cast<std::size_t>(p)]);
  });
  session.variables.emplace(name, std::move(held));
}

// All variables of the program that the session does not hold yet.
void hold_variables(SessionState& session, const GraphData& graph, const Program& program) {
  std::int64_t elements = 0;
  const auto is_new = [&](const ProgramVariable& v) { return !session.variables.contains(v.name); };
  const auto value_of = [&](const ProgramVariable& v) -> const Value& {
    return program.values[static_cast<std::size_t>(v.value)];
  };
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
  if (session.gatherers.empty()) return;
  const std::uint64_t number = seeded(hash_key(to_text(program), 0), session.options.seed);
  std::atomic<int> unlike = -1;  // all come to the same verdict
  session.on_local_processors([&](int p) {
    Gatherer& gatherer = *session.gatherers[static_cast<std::size_t>(p)];
    unlike = gatherer.first_unlike(number, "of the program's hash, Session::compile", session.deadline());
  });
  if (unlike < 0) return;
  throw UserError({.what = with_coordinates(str("processor ", unlike, " compiled another program than processor ", 0,
                                                ", or has another seed"),
                                            session.mesh),
                   .where = str("Session::compile, layout \"", program.layout, "\", mesh ", session.mesh),
                   .fix = "let every process make the same calls in the same order, with the same graph, layout, "
                          "options and seed; none of them may depend on the process, its host or the time"});
}

}  // namespace

Executable Session::compile(const Graph& graph, const Layout& layout, const CompileOptions& options) {
  SessionState& session = *state_;
  session.make_ready();
  auto state = std::make_shared<ExecutableState>();
  state->session = state_;
  state->graph = graph.data();
  const std::int64_t begin = TraceLog::now();
  const Activity activity("compiling");
  state->program =
      compile_program(graph, session.mesh, layout, options, session.options.store, *session.engine).program;
  state->compile_seconds = static_cast<double>(TraceLog::now() - begin) * 1e-9;
  state->fetch = options.fetch;
  const Program& program = state->program;
  check_agreement(session, program);
  hold_variables(session, *state->graph, program);
  state->bound.resize(static_cast<std::size_t>(session.mesh.size()));
  session.on_local_processors([&](int p) {
    std::map<ValueId, void*> held;
    for (const ProgramVariable& v : program.variables)
      held[v.value] = session.variables.at(v.name).shards[static_cast<std::size_t>(p)].data();
    state->bound[static_cast<std::size_t>(p)] = std::make_unique<BoundProgram>(
        program, p, *session.wire, *session.engine, held, session.workers[static_cast<std::size_t>(p)].get(),
        Checks{options.check_finite, options.check_ids});
  });
  double binding = 0;
  for (const int p : session.here)
    binding = std::max(binding, state->bound[static_cast<std::size_t>(p)]->bind_seconds());
  state->compile_seconds += binding;
  if (options.trace.steps > 0) trace_runs(*state, options.trace);
  return Executable(std::move(state));
}

Array Session::value(const std::string& variable) const {
  state_->make_ready();
  const SessionVariable& held = state_->variable(variable);
  return state_->gathered(held.value, str("of variable '", variable, "', Session::value"),
                          [&](int p) { return held.shards[static_cast<std::size_t>(p)].data(); });
}

void Session::set_value(const std::string& variable, const Array& value) {
  state_->make_ready();
  SessionVariable& held = const_cast<SessionVariable&>(state_->variable(variable));
  const Shape whole = global_shape(held.value.shape, held.value.sharding, state_->mesh);
  if (!same_dims(whole, value.shape()))
    throw UserError({.what = str("variable '", variable, "' ", whole, " cannot take values of shape ", value.shape()),
                     .where = "Session::set_value",
                     .fix = "give an array with the variable's dims"});
  const bool fits =
      value.shape() == whole && value.dtype() == held.value.dtype;  // large ones are not copied for nothing
  if (fits) store(*state_, held, value);
  else store(*state_, held, value.transposed(whole).cast(held.value.dtype));
}

std::vector<std::string> Session::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, held] : state_->variables) names.push_back(name);
  return names;
}

const Mesh& Session::mesh() const { return state_->mesh; }

const std::vector<int>& Session::processors() const { return state_->here; }

}  // namespace weft
