// The compile bench: the passes of the compiler, timed.
#include <algorithm>
#include <chrono>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/compile.h"
#include "api/explain_parts.h"
#include "base/str.h"
#include "program/memory_plan.h"
#include "weft/detail/bench.h"
#include "weft/error.h"

namespace weft::bench {

namespace {

double median(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

}  // namespace

CompileTime compile(const Graph& graph, const Mesh& mesh, const Layout& layout, const CompileOptions& options,
                    const Store& store, int repeats) {
  if (repeats < 1 || repeats > 1000)
    throw UserError({.code = "bench.bad-compile-repeats",
                     .what = str("cannot measure a compilation with ", repeats, " repeats"),
                     .where = "bench::compile",
                     .fix = "give from 1 to 1000 repeats"});
  CompileTime time;
  std::vector<double> whole, binding;
  std::vector<std::vector<double>> parts;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const Engine& engine = *engines().front();
    const auto shared = std::make_shared<const Compiled>(compile_program(graph, mesh, layout, options, store, engine));
    const Compiled& compiled = *shared;
    const auto planned = std::chrono::steady_clock::now();
    const BindReport bound = engine.describe(shared, {});
    whole.push_back(std::chrono::duration<double>(planned - begin).count());
    binding.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - planned).count());
    const std::vector<PassTime>& times = compiled.times;
    parts.resize(times.size());
    time.passes.resize(times.size());
    for (std::size_t k = 0; k < times.size(); ++k) {
      parts[k].push_back(times[k].seconds);
      time.passes[k] = {times[k].pass, median(parts[k])};
    }
    if (i > 0) continue;
    visit_bodies(compiled.program,
                 [&](const Program& body, std::int64_t) { time.instructions += static_cast<int>(body.body.size()); });
    time.arena_bytes = compiled.arena_bytes();
    time.live_bytes = compiled.plan.live_bytes;
    time.variable_bytes = compiled.variable_bytes();
    time.scratch_bytes = bound.scratch_bytes;
  }
  time.plan_s = median(whole);
  time.bind_s = median(binding);
  return time;
}

std::string table(const CompileTime& time) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(3);
  const auto row = [&](const std::string& what, double seconds) {
    out << "  " << std::left << std::setw(24) << what << std::right << std::setw(10) << seconds * 1e3 << " ms\n";
  };
  for (const auto& [pass, seconds] : time.passes) row(pass, seconds);
  row("to the plan", time.plan_s);
  row("then to bound kernels", time.bind_s);
  out << time.instructions << " instructions; on each processor " << bytes_text(time.variable_bytes)
      << " of variables, an arena of " << bytes_text(time.arena_bytes)
      << " (live at once: " << bytes_text(time.live_bytes) << "), scratch of " << bytes_text(time.scratch_bytes)
      << "\n";
  return out.str();
}

std::string json(const CompileTime& time) {
  nlohmann::ordered_json all;
  all["plan_s"] = time.plan_s;
  all["bind_s"] = time.bind_s;
  all["passes"] = nlohmann::ordered_json::array();
  for (const auto& [pass, seconds] : time.passes) all["passes"].push_back({{"pass", pass}, {"seconds", seconds}});
  all["instructions"] = time.instructions;
  all["arena_bytes"] = time.arena_bytes;
  all["live_bytes"] = time.live_bytes;
  all["variable_bytes"] = time.variable_bytes;
  all["scratch_bytes"] = time.scratch_bytes;
  return all.dump(2);
}

}  // namespace weft::bench
