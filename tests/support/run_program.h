// Runs a program on the threads of a mesh, with the reference kernels: shards in, shards out.
#pragma once

#include <exception>
#include <map>
#include <string>
#include <vector>

#include "base/index.h"
#include "comm/wire.h"
#include "program/builder.h"
#include "runtime/host/host_engine.h"
#include "runtime/runner.h"
#include "weft/array.h"
#include "weft/error.h"

namespace weft::test {

using Shards = Indexed<ProcessorId, Array>;
using NamedShards = std::map<std::string, Shards>;

struct RunOptions {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  int steps = 1;
  NamedShards variables = {};
  std::function<void(const HostEvent&)> host = {};
};

struct RunResult {
  NamedShards outputs;
  NamedShards variables;       // after the last step
  std::exception_ptr failure;  // of a step
};

inline std::span<std::byte> span_of(Array& array) {
  return {array.bytes(), static_cast<std::size_t>(array.elements()) * size_of(array.dtype())};
}
inline std::span<const std::byte> span_of(const Array& array) { return span_of(const_cast<Array&>(array)); }

inline RunResult run_all(const Program& program, const NamedShards& inputs, const RunOptions& options = {},
                         const Engine& engine = reference_engine(), int workers = 0) {
  const auto count = static_cast<std::size_t>(program.mesh.size());
  RunResult result{.outputs = {}, .variables = options.variables, .failure = {}};
  const auto processors = std::make_shared<Processors>(program.mesh, comm::make_threads_wire(program.mesh.size()),
                                                       engine, ProcessorOptions{30, workers});
  const auto value = [&](ValueId id) { return program.values[id]; };
  for (const ProgramOutput& output : program.outputs)
    result.outputs[output.name] = Shards(count, Array(value(output.value).shape, value(output.value).dtype));
  std::vector<VariableMemory> variables;
  std::vector<const VariableMemory*> places;
  for (const ProgramVariable& v : program.variables) variables.push_back(processors->allocate(value(v.value)));
  for (std::size_t v = 0; v < variables.size(); ++v) {
    places.push_back(&variables[v]);
    Shards& shards = result.variables.at(program.variables[v].name);
    processors->on_each([&](ProcessorId p) { processors->device(p).write(span_of(shards[p]), variables[v].on(p)); });
  }
  const auto runner = std::make_shared<Runner>(
      processors, std::make_shared<const Compiled>(with_plan(program, engine.target())), places);
  StepJob job{.args = {.seed = options.seed, .deadline = std::chrono::seconds(30), .host = options.host}};
  job.feed = [&](ProcessorId p, BoundProgram& bound) {  // at every step: a run may have written over them
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
      processors->device(p).write(span_of(inputs.at(program.inputs[i].name)[p]), bound.input(i));
  };
  job.fetch = [&](ProcessorId p, const BoundProgram& bound) {
    for (std::size_t i = 0; i < program.outputs.size(); ++i)
      processors->device(p).read(bound.output(i), span_of(result.outputs.at(program.outputs[i].name)[p]));
  };
  try {
    for (int step = 0; step < options.steps; ++step) {
      job.args.step = options.step + static_cast<std::uint32_t>(step);
      runner->start(job)->finish();
    }
  } catch (...) {
    result.failure = std::current_exception();
    return result;
  }
  for (std::size_t v = 0; v < variables.size(); ++v) {
    Shards& shards = result.variables.at(program.variables[v].name);
    processors->on_each([&](ProcessorId p) { processors->device(p).read(variables[v].on(p), span_of(shards[p])); });
  }
  return result;
}

// As run_all, but a failure is thrown.
inline NamedShards run_on_mesh(const Program& program, const NamedShards& inputs, const RunOptions& options = {}) {
  RunResult result = run_all(program, inputs, options);
  if (result.failure) std::rethrow_exception(result.failure);
  return result.outputs;
}

// The same array on every processor.
inline Shards everywhere(const Mesh& mesh, const Array& array) {
  return Shards(static_cast<std::size_t>(mesh.size()), array);
}

inline void each_index(const Shape& shape, const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> index(shape.rank(), 0);
  for (std::int64_t left = shape.elements(); left > 0; --left) {
    visit(index);
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (++index[d] < shape[d].size) break;
      index[d] = 0;
    }
  }
}

inline std::int64_t row_major(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t result = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) result = result * shape[d].size + index[d];
  return result;
}

// The element of `x` at the coordinates that `shape` and `index` give by name; dims that x lacks are passed over.
inline double at_named(const Array& x, const Shape& shape, const std::vector<std::int64_t>& index) {
  std::vector<std::int64_t> own;
  for (const Dim& dim : x.shape()) own.push_back(index[shape.position(dim.name)]);
  return x.at(row_major(x.shape(), own));
}

// The shards of a global array, and back: all copies must agree.
inline Shards cut(const Array& whole, const Sharding& sharding, const Mesh& mesh) {
  const Shape local = local_shape(whole.shape(), sharding, mesh);
  Shards shards(static_cast<std::size_t>(mesh.size()), Array(local, whole.dtype()));
  for (const ProcessorId p : mesh.processors()) {
    const std::vector<std::int64_t> begin = shard_begin(local, sharding, mesh, p);
    each_index(local, [&](std::vector<std::int64_t> index) {
      const std::int64_t to = row_major(local, index);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += begin[d];
      shards[p].set(to, whole.at(row_major(whole.shape(), index)));
    });
  }
  return shards;
}

}  // namespace weft::test
