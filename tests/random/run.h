// Running a graph: through a Session, and as a program that was read from its text. Results are the fetched tensors and
// metrics of each run, then the variables after the last.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "check.h"
#include "program/text.h"
#include "runtime/host/host_engine.h"
#include "runtime/runner.h"
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
      test::open_session(mesh, {.seed = kSeed, .store = store, .print = [](const std::string&) {}}, device);
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
      : wide_(wide),
        processors_(std::make_shared<Processors>(program.mesh, comm::make_threads_wire(program.mesh.size()),
                                                 cpu_engine(), ProcessorOptions{60, 1})) {
    for (const ProgramVariable& variable : program.variables) {
      variables_.push_back(processors_->allocate(program.values[variable.value]));
      processors_->upload(variables.at(variable.name), variables_.back());
    }
    std::vector<const VariableMemory*> places;
    for (const VariableMemory& variable : variables_) places.push_back(&variable);
    runner_ = std::make_shared<Runner>(
        processors_, std::make_shared<const weft::Compiled>(with_plan(program, cpu_engine().target())), places);
  }

  Results run(const Feeds& feeds) {
    Results results;
    for (int run = 0; run < kRuns; ++run) one_step(feeds, run, results);
    std::map<std::string, Array> variables;
    for (std::size_t v = 0; v < variables_.size(); ++v)
      variables[program().variables[v].name] = processors_->gather(variables_[v], "of a variable");
    for (const auto& [name, array] : variables) results.emplace_back("variable " + name, array);
    return results;
  }

 private:
  const Program& program() const { return runner_->program(); }
  const Value& value(ValueId id) const { return program().values[id]; }

  void one_step(const Feeds& feeds, int run, Results& results) {
    std::map<std::string, double> metrics;
    std::map<std::string, const Array*> given;
    for (const auto& [tensor, array] : feeds) given[tensor.name()] = &array;
    std::vector<Array> inputs, outputs;
    for (const ProgramInput& input : program().inputs)
      inputs.push_back(given.at(input.name)->cast(value(input.value).dtype));
    for (const ProgramOutput& output : program().outputs) outputs.push_back(processors_->room_for(value(output.value)));
    StepJob job{.args = {.seed = kSeed, .step = static_cast<std::uint32_t>(run), .deadline = std::chrono::seconds(60)}};
    job.args.host = [&](const HostEvent& event) {
      if (event.what == "metric") metrics[event.text] = event.value.item();
    };
    job.feed = [&](ProcessorId p, BoundProgram&) { runner_->feed(p, inputs); };
    job.fetch = [&](ProcessorId p, const BoundProgram&) { runner_->fetch(p, outputs); };
    runner_->start(std::move(job))->finish();
    for (std::size_t i = 0; i < outputs.size(); ++i) results.emplace_back(program().outputs[i].name, outputs[i]);
    for (const auto& [name, metric] : metrics) results.emplace_back("metric " + name, metric_array(metric, wide_));
  }

  const bool wide_;
  const std::shared_ptr<Processors> processors_;
  std::vector<VariableMemory> variables_;
  std::shared_ptr<Runner> runner_;
};

}  // namespace weft::random_graphs
