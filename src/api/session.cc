#include "weft/session.h"

#include "api/compile.h"
#include "api/shards.h"
#include "api/state.h"
#include "base/str.h"
#include "language/graph_data.h"

namespace weft {

wire::Choice wire::threads() { return {"threads"}; }
runtime::Choice runtime::reference() { return {"reference"}; }

void SessionState::check_usable() const {
  if (!failure.empty())
    throw RunError({.what = str("this session is unusable since a run failed: ", failure),
                    .where = str("session on mesh ", mesh),
                    .fix = "make a new Session"});
}

const HeldVariable& SessionState::variable(const std::string& name) const {
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

Array SessionState::gathered(const Value& value, const std::function<const void*(int)>& shard) const {
  Array whole(global_shape(value.shape, value.sharding, mesh), value.dtype);
  for (int p = 0; p < mesh.size(); ++p)
    if (speaks_for_shard(value, mesh, p)) copy_from_shard(shard(p), value, mesh, p, whole);
  return whole;
}

Session::Session(const Mesh& mesh, const wire::Choice& wire, const runtime::Choice& runtime,
                 const SessionOptions& options)
    : state_(std::make_shared<SessionState>()) {
  if (wire.name != "threads")
    throw UserError({.what = str("there is no wire '", wire.name, "'"),
                     .where = str("session on mesh ", mesh),
                     .fix = "use wire::threads()"});
  if (runtime.name != "reference")
    throw UserError({.what = str("there is no runtime '", runtime.name, "'"),
                     .where = str("session on mesh ", mesh),
                     .fix = "use runtime::reference()"});
  state_->mesh = mesh;
  state_->options = options;
  state_->wire = comm::make_threads_wire(mesh.size());
  state_->backend = &reference_backend();
  state_->crew = std::make_unique<Crew>(mesh.size());
}

namespace {

void store(SessionState& session, HeldVariable& held, const Array& whole) {
  session.crew->run([&](int p) {
    copy_to_shard(whole, held.value, session.mesh, p, held.shards[static_cast<std::size_t>(p)].data());
  });
}

// Gives a variable its memory and first values, or checks that an earlier executable holds it alike.
void hold(SessionState& session, const GraphData& graph, const Program& program, const ProgramVariable& variable) {
  const Value& value = program.values[static_cast<std::size_t>(variable.value)];
  const auto found = session.variables.find(variable.name);
  if (found != session.variables.end()) {
    const Value& held = found->second.value;
    if (held.dtype != value.dtype || held.shape != value.shape || held.sharding != value.sharding)
      throw UserError(
          {.what = str("variable '", variable.name, "' is held as ", held.dtype, " ", held.shape, " ",
                       text_of(held.sharding, held.shape, session.mesh), ", but this graph wants ", value.dtype, " ",
                       value.shape, " ", text_of(value.sharding, value.shape, session.mesh)),
           .where = str("layout \"", program.layout, "\", mesh ", session.mesh),
           .fix = "compile with the layout and dtypes of the first executable, or make a new Session"});
    return;
  }
  HeldVariable held{value, std::vector<comm::Arena>(static_cast<std::size_t>(session.mesh.size()))};
  const std::size_t bytes = static_cast<std::size_t>(value.shape.elements()) * size_of(value.dtype);
  session.crew->run([&](int p) { held.shards[static_cast<std::size_t>(p)] = session.wire->allocate(p, bytes); });
  const Node& node = graph.nodes[static_cast<std::size_t>(graph.variable_nodes.at(variable.name))];
  store(session, held,
        initial_value(variable.name, node.attrs.get<Init>("init"), node.outputs[0].shape, value.dtype,
                      session.options.seed));
  session.variables.emplace(variable.name, std::move(held));
}

}  // namespace

Executable Session::compile(const Graph& graph, const Layout& layout, const CompileOptions& options) {
  SessionState& session = *state_;
  session.check_usable();
  auto state = std::make_shared<ExecutableState>();
  state->session = state_;
  state->graph = graph.data();
  state->program = compile_program(graph, session.mesh, layout, options, session.options.store).program;
  state->fetch = options.fetch;
  const Program& program = state->program;
  for (const ProgramVariable& variable : program.variables) hold(session, *state->graph, program, variable);
  state->bound.resize(static_cast<std::size_t>(session.mesh.size()));
  session.crew->run([&](int p) {
    std::map<ValueId, void*> held;
    for (const ProgramVariable& v : program.variables)
      held[v.value] = session.variables.at(v.name).shards[static_cast<std::size_t>(p)].data();
    state->bound[static_cast<std::size_t>(p)] =
        std::make_unique<BoundProgram>(program, p, *session.wire, *session.backend, held);
  });
  return Executable(std::move(state));
}

Array Session::value(const std::string& variable) const {
  state_->check_usable();
  const HeldVariable& held = state_->variable(variable);
  return state_->gathered(held.value, [&](int p) { return held.shards[static_cast<std::size_t>(p)].data(); });
}

void Session::set_value(const std::string& variable, const Array& value) {
  state_->check_usable();
  HeldVariable& held = const_cast<HeldVariable&>(state_->variable(variable));
  const Shape whole = global_shape(held.value.shape, held.value.sharding, state_->mesh);
  if (!same_dims(whole, value.shape()))
    throw UserError({.what = str("variable '", variable, "' ", whole, " cannot take values of shape ", value.shape()),
                     .where = "Session::set_value",
                     .fix = "give an array with the variable's dims"});
  store(*state_, held, value.transposed(whole).cast(held.value.dtype));
}

std::vector<std::string> Session::variables() const {
  std::vector<std::string> names;
  for (const auto& [name, held] : state_->variables) names.push_back(name);
  return names;
}

const Mesh& Session::mesh() const { return state_->mesh; }

}  // namespace weft
