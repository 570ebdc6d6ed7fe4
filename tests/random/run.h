// Running a graph: through a Session, and as a program that was read from its text. Results are the fetched tensors and
// metrics of each run, then the variables after the last.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "api/processor_threads.h"
#include "api/shards.h"
#include "check.h"
#include "program/text.h"
#include "runtime/bound_program.h"
#include "support/processes.h"

namespace weft::random_graphs {

struct Compiled {
  Session session;
  Executable step;
  std::vector<std::pair<std::string, std::string>> dumps;  // pass, text
};

// `wide`: every float as f64.
inline Compiled compile(const Built& built, bool wide, const Mesh& mesh, const std::string& layout, const Store& store,
                        const device::Choice& device) {
  Session session =
      testing::open_session(mesh, {.seed = kSeed, .store = store, .print = [](const std::string&) {}}, device);
  std::vector<std::pair<std::string, std::string>> dumps;
  Executable step = session.compile(
      built.graph, Layout::parse(layout),
      {.fetch = built.fetch,
       .update = built.update,
       .metrics = true,
       .compute_as = wide ? std::optional<DType>(DType::kF64) : std::nullopt,
       .dump = [&](std::string_view pass, const std::string& text) { dumps.emplace_back(pass, text); }});
  return {std::move(session), std::move(step), std::move(dumps)};
}

inline std::map<std::string, Array> variables_of(const Session& session) {
  std::map<std::string, Array> arrays;
  for (const std::string& name : session.variables()) arrays[name] = session.value(name);
  return arrays;
}

inline Array metric_array(double value, bool wide) { return Array::scalar(value, wide ? DType::kF64 : DType::kF32); }

inline Results run(Compiled& compiled, const Built& built, bool wide) {
  Results results;
  for (int run = 0; run < kRuns; ++run) {
    const Values values = compiled.step.run(built.feeds);
    const std::string at = " of run " + std::to_string(run);
    for (std::size_t i = 0; i < built.fetch.size(); ++i)
      results.emplace_back("output " + std::to_string(i) + " '" + built.fetch[i].name() + "'" + at,
                           values[built.fetch[i]]);
    for (const auto& [name, value] : values.metrics())
      results.emplace_back("metric " + name + at, metric_array(value, wide));
  }
  for (const auto& [name, array] : variables_of(compiled.session)) results.emplace_back("variable " + name, array);
  return results;
}

// One program on a mesh of threads of its own, without a Session: what a dump between two passes says.
class ProgramRun {
 public:
  ProgramRun(const Program& program, const std::map<std::string, Array>& variables, bool wide)
      : program_(program),
        wide_(wide),
        processors_(program.mesh.size()),
        wire_(comm::make_threads_wire(processors_)),
        held_(static_cast<std::size_t>(processors_)),
        bound_(static_cast<std::size_t>(processors_)),
        crew_(wire_->local()) {
    crew_.run([&](int p) {
      std::map<ValueId, void*> where;
      for (const ProgramVariable& variable : program_.variables) {
        const Value& type = value(variable.value);
        comm::Arena& arena = held_[static_cast<std::size_t>(p)][variable.name];
        arena = wire_->allocate(p, static_cast<std::size_t>(type.shape.elements()) * size_of(type.dtype));
        copy_to_shard(variables.at(variable.name), type, program_.mesh, p, arena.data());
        where[variable.value] = arena.data();
      }
      bound_[static_cast<std::size_t>(p)] = std::make_unique<BoundProgram>(program_, p, *wire_, cpu_engine(), where);
    });
  }

  Results run(const Feeds& feeds) {
    Results results;
    for (int run = 0; run < kRuns; ++run) one_step(feeds, run, results);
    std::map<std::string, Array> variables;
    for (const ProgramVariable& variable : program_.variables)
      variables[variable.name] =
          gathered(value(variable.value), [&](std::size_t p) { return held_[p][variable.name].data(); });
    for (const auto& [name, array] : variables) results.emplace_back("variable " + name, array);
    return results;
  }

 private:
  const Value& value(ValueId id) const { return program_.values[static_cast<std::size_t>(id)]; }

  template <class Where>
  Array gathered(const Value& type, const Where& where) {
    Array whole(global_shape(type.shape, type.sharding, program_.mesh), type.dtype);
    for (int p = 0; p < processors_; ++p)
      if (is_primary_shard(type, program_.mesh, p))
        copy_from_shard(where(static_cast<std::size_t>(p)), type, program_.mesh, p, whole);
    return whole;
  }

  void one_step(const Feeds& feeds, int run, Results& results) {
    std::map<std::string, double> metrics;
    RunContext context{.seed = kSeed, .step = static_cast<std::uint32_t>(run)};
    context.deadline = std::chrono::seconds(60);
    context.host = [&](const HostEvent& event) {
      if (event.what == "metric") metrics[event.text] = event.value.item();
    };
    std::map<std::string, const Array*> given;
    for (const auto& [tensor, array] : feeds) given[tensor.name()] = &array;
    crew_.run([&](int p) {
      BoundProgram& bound = *bound_[static_cast<std::size_t>(p)];
      for (const ProgramInput& input : program_.inputs) {
        const Value& type = value(input.value);
        copy_to_shard(given.at(input.name)->cast(type.dtype), type, program_.mesh, p, bound.data(input.value));
      }
      bound.run(context);
    });
    for (const ProgramOutput& output : program_.outputs)
      results.emplace_back(
          output.name, gathered(value(output.value), [&](std::size_t p) { return bound_[p]->output(output.value); }));
    for (const auto& [name, metric] : metrics) results.emplace_back("metric " + name, metric_array(metric, wide_));
  }

  const Program& program_;
  bool wide_;
  int processors_;
  std::unique_ptr<comm::Wire> wire_;
  std::vector<std::map<std::string, comm::Arena>> held_;
  std::vector<std::unique_ptr<BoundProgram>> bound_;
  ProcessorThreads crew_;
};

}  // namespace weft::random_graphs
