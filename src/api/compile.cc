#include "api/compile.h"

#include <chrono>

#include "base/str.h"
#include "partition/partition.h"
#include "program/text.h"

namespace weft {

namespace {

#ifdef WEFT_VERIFY_PROGRAMS
constexpr bool kVerify = true;
#else
constexpr bool kVerify = false;
#endif

// A program that its text does not give back could not be carried by a bug report.
void check_round_trip(const Program& program) {
  const std::string text = to_text(program);
  internal_check(to_text(parse_program(text)) == text, "a program's text parses to another program");
}

std::vector<TensorId> ids_of(const Tensors& tensors, const Graph& graph, const char* use) {
  std::vector<TensorId> ids;
  for (const Tensor& x : tensors) {
    if (!x || x.graph() != graph.data())
      throw UserError({.code = "compile.foreign-tensor",
                       .what = str("a tensor to ", use, " is ", x ? str("'", x.name(), "' of another graph") : "empty"),
                       .where = "Session::compile",
                       .fix = "give tensors of the graph that is compiled"});
    if (graph.data()->node(x.id()).loop >= 0)
      throw UserError({.code = "compile.tensor-inside-loop",
                       .what = str("a tensor to ", use, ", '", x.name(), "', is inside the body of a loop"),
                       .where = "Session::compile",
                       .fix = "return it from the body, carried, summed or kept, and use the result of loop()"});
    ids.push_back(x.id());
  }
  return ids;
}

// What a memory limit leaves for the arena.
std::int64_t arena_limit(const Program& program, std::int64_t memory_bytes) {
  const std::int64_t held = variable_bytes(program);
  if (held >= memory_bytes)
    throw UserError(
        {.code = "memory.variables-over-limit",
         .what = str("the variables alone take ", held, " bytes of each processor; the memory limit is ", memory_bytes),
         .where = str("mesh ", program.mesh, ", layout \"", program.layout, "\", the memory limit"),
         .fix = "use a storage layout, more processors or a higher limit"});
  return memory_bytes - held;
}

}  // namespace

Program lowered_program(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                        const Store& store, const Engine& engine, std::vector<PassTime>* times) {
  if (options.compute_as && !is_float(*options.compute_as))
    throw UserError({.code = "compile.compute-as-not-float",
                     .what = str("the floats of a program cannot become ", *options.compute_as),
                     .where = "CompileOptions::compute_as",
                     .fix = "give a floating-point dtype, such as DType::kF64"});
  const auto begin = std::chrono::steady_clock::now();
  Program program = partition({.graph = graph.data().get(),
                               .fetch = ids_of(options.fetch, graph, "fetch"),
                               .update = ids_of(options.update, graph, "update"),
                               .metrics = options.metrics,
                               .mesh = mesh,
                               .layout = layout,
                               .store = store,
                               .compute_as = options.compute_as});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (times) times->push_back({"partition", seconds.count()});
  if (options.dump) options.dump("partition", to_text(program));
  PassOptions passes{.verify = kVerify, .times = times, .target = engine.target()};
  if (options.memory_bytes > 0) passes.arena_limit = arena_limit(program, options.memory_bytes);
  if (options.dump) passes.dump = [&](std::string_view pass, const Program& p) { options.dump(pass, to_text(p)); };
  program = run_passes(std::move(program), passes);
  if (kVerify) check_round_trip(program);
  return program;
}

Compiled compile_program(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                         const Store& store, const Engine& engine) {
  std::vector<PassTime> times;
  Program program = lowered_program(graph, mesh, layout, options, store, engine, &times);
  return with_plan(std::move(program), engine.target(), std::move(times));
}

}  // namespace weft
