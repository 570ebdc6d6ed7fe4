// Runs a program on the threads of a mesh, with the reference kernels: shards in, shards out.
#pragma once

#include <cstring>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "comm/wire.h"
#include "program/builder.h"
#include "runtime/bound_program.h"
#include "weft/array.h"
#include "weft/error.h"

namespace weft::test {

using Shards = std::vector<Array>;  // one per processor
using NamedShards = std::map<std::string, Shards>;

// What came out of one processor: its error, or none.
using Failures = std::vector<std::exception_ptr>;

struct RunOptions {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  int steps = 1;
  NamedShards variables = {};
  std::function<void(const HostEvent&)> host = {};
};

struct RunResult {
  NamedShards outputs;
  NamedShards variables;  // after the last step
  Failures failures;
};

inline std::size_t bytes_of(const Array& array) {
  return static_cast<std::size_t>(array.elements()) * size_of(array.dtype());
}

// One processor's part: binds, feeds, runs, reads.
inline void run_processor(const Program& program, int p, comm::Wire& wire, const NamedShards& inputs,
                          const RunOptions& options, RunResult& result) {
  const auto at = static_cast<std::size_t>(p);
  std::map<ValueId, void*> held;
  for (const ProgramVariable& v : program.variables) held[v.value] = result.variables.at(v.name)[at].bytes();
  BoundProgram bound(program, p, wire, reference_engine(), held);
  for (int step = 0; step < options.steps; ++step) {
    for (const ProgramInput& input : program.inputs) {  // a run may have written over them
      const Array& array = inputs.at(input.name)[at];
      std::memcpy(bound.data(input.value), array.bytes(), bytes_of(array));
    }
    bound.run({.seed = options.seed,
               .step = options.step + static_cast<std::uint32_t>(step),
               .deadline = std::chrono::seconds(30),
               .host = options.host});
  }
  for (const ProgramOutput& output : program.outputs) {
    Array& array = result.outputs.at(output.name)[at];
    std::memcpy(array.bytes(), bound.output(output.value), bytes_of(array));
  }
}

inline RunResult run_all(const Program& program, const NamedShards& inputs, const RunOptions& options = {}) {
  const auto count = static_cast<std::size_t>(program.mesh.size());
  RunResult result{.outputs = {}, .variables = options.variables, .failures = Failures(count)};
  for (const ProgramOutput& output : program.outputs) {
    const Value& value = program.values[static_cast<std::size_t>(output.value)];
    result.outputs[output.name] = Shards(count, Array(value.shape, value.dtype));
  }
  const std::unique_ptr<comm::Wire> wire = comm::make_threads_wire(program.mesh.size());
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < count; ++p)
    threads.emplace_back([&, p] {
      try {
        run_processor(program, static_cast<int>(p), *wire, inputs, options, result);
      } catch (...) {
        result.failures[p] = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return result;
}

// As run_all, but the first failure is thrown.
inline NamedShards run_on_mesh(const Program& program, const NamedShards& inputs, const RunOptions& options = {}) {
  RunResult result = run_all(program, inputs, options);
  for (const std::exception_ptr& failure : result.failures)
    if (failure) std::rethrow_exception(failure);
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
  for (int p = 0; p < mesh.size(); ++p) {
    const std::vector<std::int64_t> begin = shard_begin(local, sharding, mesh, p);
    each_index(local, [&](std::vector<std::int64_t> index) {
      const std::int64_t to = row_major(local, index);
      for (std::size_t d = 0; d < index.size(); ++d) index[d] += begin[d];
      shards[static_cast<std::size_t>(p)].set(to, whole.at(row_major(whole.shape(), index)));
    });
  }
  return shards;
}

}  // namespace weft::test
