// Random graphs on random meshes and layouts: the numbers of one processor, always. A graph that fails is cut down and
// written as C++ beside the test's other output. WEFT_RANDOM_SEED gives another seed, WEFT_RANDOM_GRAPHS another number.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "check.h"
#include "emit.h"
#include "generate.h"
#include "shrink.h"

namespace weft::random_graphs {
namespace {

constexpr std::uint64_t kDefaultSeed = 20181105;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

struct Count {
  int graphs = 0, layouts = 0, unsplit = 0, refusals = 0, failures = 0;
  std::map<std::string, int> calls;
};

// Cuts the recipe down and says where the C++ of it lies.
void report(const Recipe& recipe, const Failure& failure, Passes passes) {
  const auto found = [&](const Recipe& candidate) -> std::optional<Failure> {
    try {
      const Verdict verdict = check(candidate, passes);
      return verdict.failure && verdict.failure->kind == failure.kind ? verdict.failure : std::nullopt;
    } catch (const std::exception&) {
      return {};
    }
  };
  const bool repeats = found(recipe).has_value();
  const Recipe small = repeats ? Shrinker(recipe, [&](const Recipe& r) { return found(r).has_value(); }).run() : recipe;
  const Failure last = found(small).value_or(failure);
  const std::filesystem::path path = std::filesystem::absolute(str("failing_graph_", recipe.seed, ".cc"));
  std::ofstream(path) << emit(small, last.kind, last.detail);
  ADD_FAILURE() << "graph " << recipe.seed << ", mesh " << recipe.mesh << ", layout \"" << recipe.layout << "\": " << failure.kind
                << (repeats ? "" : " (not again)") << "\n" << failure.detail << "\ncut down from " << recipe.steps.size()
                << " to " << small.steps.size() << " steps, on mesh " << small.mesh << " with layout \"" << small.layout
                << "\": " << last.detail << "\nas C++: " << path.string();
}

// Layouts of one mesh: one that should work, and one that should be refused if the draws find it.
std::vector<std::string> layouts_for(Rng& rng, const Recipe& recipe, const Built& built, const Mesh& mesh) {
  const std::vector<std::string> dims = testing::dims_of(*built.graph.data());
  const GraphData needed = needed_part(built);
  std::string good, bad;
  for (int i = 0; i < 12 && (good.empty() || bad.empty()); ++i) {
    const std::string layout = random_layout(rng, dims, mesh);
    (testing::is_legal(needed, mesh, layout) ? good : bad) = layout;
  }
  for (std::string less = bad; good.empty() && !less.empty();) {  // rule by rule less, until it works
    less.resize(less.find(' ') == std::string::npos ? 0 : less.rfind(' '));
    if (testing::is_legal(needed, mesh, less)) good = less;
  }
  if (has_own_layouts(recipe) || bad.empty()) return {good};
  return {good, bad};
}

void check_graph(std::uint64_t seed, int meshes, Count& count) {
  const Passes passes = seed % 8 == 0 ? Passes::kAll : Passes::kFirst;
  Recipe recipe = generate(seed);
  ++count.graphs;
  for (const Step& step : recipe.steps) ++count.calls[step.function];
  const Reference one = reference(recipe);
  if (one.failure) return report(recipe, *one.failure, passes);
  Rng rng(mixed(seed));
  for (int m = 0; m < meshes; ++m) {
    recipe.mesh = random_mesh(rng);
    for (const std::string& layout : layouts_for(rng, recipe, one.built, Mesh::parse(recipe.mesh))) {
      recipe.layout = layout;
      const Verdict verdict = check_layout(recipe, one, passes);
      ++(verdict.refused ? count.refusals : layout.empty() ? count.unsplit : count.layouts);
      if (!verdict.failure) continue;
      ++count.failures;
      report(recipe, *verdict.failure, passes);
      return;
    }
  }
}

void check_graphs(std::uint64_t graphs, int meshes) {
  graphs = number_from("WEFT_RANDOM_GRAPHS", graphs);
  const std::uint64_t base = number_from("WEFT_RANDOM_SEED", kDefaultSeed);
  std::cout << "seed " << base << ": " << graphs << " graphs\n" << std::flush;
  const auto begin = std::chrono::steady_clock::now();
  Count count;
  for (std::uint64_t i = 0; i < graphs && count.failures < 5; ++i) {
    try {
      check_graph(base + i, meshes, count);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "graph " << base + i << " could not be made: " << error.what();
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << count.graphs << " graphs, " << count.layouts << " layouts ran (and " << count.unsplit << " that split nothing), "
            << count.refusals << " were refused, "
            << took.count() << " s\n";
  if (graphs < 400) return;
  for (const auto& [function, call] : all_calls()) EXPECT_GT(count.calls[function], 0) << function << " was never drawn";
}

TEST(RandomGraphs, EqualOneProcessor) { check_graphs(500, 2); }

TEST(SoakRandomGraphs, EqualOneProcessor) { check_graphs(10000, 2); }

}  // namespace
}  // namespace weft::random_graphs
