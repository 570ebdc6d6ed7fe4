// Random graphs of several kinds on one processor and on random meshes and layouts, in f64, f32 and bf16: the judge's
// numbers, always. A graph that fails is cut down and
// written as C++ beside the test's other output. WEFT_RANDOM_SEED gives another seed, WEFT_RANDOM_GRAPHS another number,
// WEFT_RANDOM_KIND graphs of one kind alone, WEFT_RANDOM_FAILURES how many failures are enough (5),
// WEFT_TEST_WIRE=mpi, under mpirun, the meshes of as many processors as there are ranks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "check.h"
#include "emit.h"
#include "generate.h"
#include "base/str.h"
#include "shrink.h"
#include "support/processes.h"
#include "support/soak.h"

namespace weft::random_graphs::random_graphs_test {
namespace {

constexpr std::uint64_t kDefaultSeed = 20181105;

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// What was done with the graphs of one kind.
struct KindCount {
  int graphs = 0, differentiated = 0, twice = 0, sloped = 0, rough = 0;
  Compared compared;
};

std::string arithmetic_of(const Recipe& recipe) { return recipe.wide ? "f64" : recipe.narrow ? "bf16" : "f32"; }

struct Count {
  int graphs = 0, layouts = 0, unsplit = 0, refusals = 0, stored = 0, failures = 0;
  std::map<std::string, KindCount> kinds;
  std::map<std::string, int> calls;
  std::map<std::string, int> collectives = {
      {"all_reduce", 0}, {"reduce_scatter", 0}, {"all_gather", 0}, {"all_to_all", 0}, {"permute", 0}};

  void count_collectives(const std::string& text) {
    for (auto& [kind, many] : collectives)
      for (std::size_t at = text.find(" = " + kind); at != std::string::npos; at = text.find(" = " + kind, at + 1))
        ++many;
  }
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
  ADD_FAILURE() << "graph " << recipe.seed << ", " << recipe.kind << " in " << arithmetic_of(recipe) << ", mesh "
                << recipe.mesh << ", layout \"" << recipe.layout << "\", store \"" << recipe.store << "\" level "
                << recipe.store_level << ": " << failure.kind << (repeats ? "" : " (not again)") << "\n"
                << failure.detail << "\ncut down from " << recipe.steps.size() << " to " << small.steps.size()
                << " steps, on mesh " << small.mesh << " with layout \"" << small.layout << "\", store \""
                << small.store << "\": " << last.detail << "\nas C++: " << path.string();
}

// How many dims of tensors a layout splits: where much is split, much has to be moved.
int splits_of(const GraphData& graph, const std::string& layout) {
  int splits = 0;
  const Layout parsed = Layout::parse(layout);
  for (const Node& node : graph.nodes)
    for (const TensorType& type : node.outputs)
      for (const LayoutRule& rule : parsed.rules()) splits += type.shape.has(rule.dim);
  return splits;
}

// Layouts of one mesh: of those drawn the one that splits most and should work (now and then the first), and one that
// should be refused if the draws find it.
std::vector<std::string> layouts_for(Rng& rng, const Recipe& recipe, const Built& built, const Mesh& mesh) {
  const std::vector<std::string> dims = test::dims_of(*built.graph.data());
  const GraphData needed = needed_part(built);
  const bool first = rng.chance(recipe.kind == "whole" ? 0.6 : 0.25);  // little split: much can stay pending
  std::string good, bad;
  for (int i = 0; i < 16; ++i) {
    const std::string layout = random_layout(rng, dims, mesh);
    if (!test::is_legal(needed, mesh, layout)) bad = layout;
    else if (good.empty() || (!first && splits_of(needed, layout) > splits_of(needed, good))) good = layout;
  }
  for (std::string less = bad; good.empty() && !less.empty();) {  // rule by rule less, until it works
    less.resize(less.find(' ') == std::string::npos ? 0 : less.rfind(' '));
    if (test::is_legal(needed, mesh, less)) good = less;
  }
  if (has_own_layouts(recipe) || bad.empty()) return {good};
  return {good, bad};
}

// A mesh that can be had here; under mpirun of a size for which there is none, one processor.
std::string mesh_to_check(Rng& rng) {
  for (int i = 0; i < 1000; ++i)
    if (const std::string mesh = random_mesh(rng); test::can_have(Mesh::parse(mesh))) return mesh;
  return "";
}

// Differences cost as much as a run: graphs that are about derivatives get them always, others now and then.
bool wants_slopes(const Recipe& recipe) {
  static const std::set<std::string> kAlways = {"carried", "second", "regions"};
  return kAlways.contains(recipe.kind) || mixed(recipe.seed) % 3 == 0;
}

void count_kind(KindCount& kind, const Truth& truth) {
  ++kind.graphs;
  kind.differentiated += !truth.built.differentiated.empty();
  kind.twice += truth.built.differentiated.size() > 1;
  kind.sloped += truth.slopes == Slopes::kChecked;
  kind.rough += truth.slopes == Slopes::kRough;
  kind.compared.elements += truth.compared.elements;
  kind.compared.unknown += truth.compared.unknown;
  kind.compared.loose += truth.compared.loose;
}

void check_graph(std::uint64_t seed, int meshes, Count& count) {
  // What the passes do does not depend on the wire.
  const Passes passes = test::ranks() > 0 ? Passes::kNone : seed % 8 == 0 ? Passes::kAll : Passes::kFirst;
  Recipe recipe = generate(seed);
  ++count.graphs;
  for (const Step& step : recipe.steps) ++count.calls[step.function];
  Rng rng(mixed(seed)), stores(mixed(seed + 1));
  for (int m = 0; m < meshes; ++m) {
    if (m > 0) recipe.wide = !recipe.wide;
    const Truth truth = truth_of(build(recipe), conditions_of(recipe), m == 0 && wants_slopes(recipe));
    count_kind(count.kinds[recipe.kind + " in " + arithmetic_of(recipe)], truth);
    if (truth.failure) {
      ++count.failures;
      return report(recipe, *truth.failure, passes);
    }
    recipe.mesh = mesh_to_check(rng);
    for (const std::string& layout : layouts_for(rng, recipe, truth.built, Mesh::parse(recipe.mesh))) {
      recipe.layout = layout;
      recipe.store = random_store(stores, Mesh::parse(recipe.mesh));
      recipe.store_level = stores.between(1, 3);
      count.stored += !recipe.store.empty();
      const Verdict verdict = check_layout(conditions_of(recipe), truth, passes);
      ++(verdict.refused ? count.refusals : layout.empty() ? count.unsplit : count.layouts);
      count.count_collectives(verdict.text);
      if (!verdict.failure) continue;
      ++count.failures;
      report(recipe, *verdict.failure, passes);
      return;
    }
  }
}

void print_counts(const Count& count, double seconds) {
  std::cout << count.graphs << " graphs, " << count.layouts << " layouts ran (and " << count.unsplit
            << " that split nothing), " << count.stored << " with a storage layout, " << count.refusals
            << " were refused, " << seconds << " s\n";
  for (const auto& [name, kind] : count.kinds)
    std::cout << "  " << kind.graphs << " " << name << ": " << kind.differentiated << " with derivatives, "
              << kind.twice << " with second ones, " << kind.sloped << " of them against differences (" << kind.rough
              << " rough); of " << kind.compared.elements << " elements " << kind.compared.unknown << " unknown, "
              << kind.compared.loose << " loose\n";
  for (const auto& [kind, many] : count.collectives) std::cout << "  " << many << " " << kind << "\n";
}

void check_graphs(std::uint64_t graphs, int meshes, std::uint64_t first = 0) {
  graphs = number_from("WEFT_RANDOM_GRAPHS", graphs);
  const std::uint64_t base = number_from("WEFT_RANDOM_SEED", kDefaultSeed) + first;
  const std::uint64_t most_failures = number_from("WEFT_RANDOM_FAILURES", 5);
  std::cout << "seed " << base << ": " << graphs << " graphs\n" << std::flush;
  const auto begin = std::chrono::steady_clock::now();
  const char* const kind = std::getenv("WEFT_RANDOM_KIND");
  Count count;
  std::uint64_t seed = base;
  for (std::uint64_t i = 0; i < graphs && count.failures < static_cast<int>(most_failures); ++i, ++seed) {
    if (i > 0 && i % 1000 == 0) std::cout << i << " graphs\n" << std::flush;
    while (kind && kind_of(seed) != kind) ++seed;
    try {
      check_graph(seed, meshes, count);
    } catch (const std::exception& error) {
      ++count.failures;
      ADD_FAILURE() << "graph " << seed << ", " << kind_of(seed) << ", could not be made: " << error.what();
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  print_counts(count, took.count());
  if (graphs < 400 || count.failures > 0) return;
  for (const auto& [kind, many] : count.collectives) EXPECT_GT(many, 0) << kind << " was never needed";
  for (const auto& [name, kind] : count.kinds) {
    // A judge that knows little says little.
    const auto share = [&, all = kind.compared.elements](std::int64_t some) {
      return static_cast<double>(some) / static_cast<double>(all);
    };
    EXPECT_LT(share(kind.compared.unknown), name.starts_with("extreme") ? 0.3 : 0.02) << name;
    EXPECT_LT(share(kind.compared.loose), name.starts_with("extreme") || name == "second in bf16" ? 0.3
                                          : name.ends_with("bf16")                                ? 0.1
                                                                                                  : 0.05)
        << name;
  }
  if (graphs < 2000) return;
  for (const auto& [function, call] : all_calls())
    EXPECT_GT(count.calls[function], 0) << function << " was never drawn";
}

TEST(RandomGraphs, GiveTheJudgesNumbers) { check_graphs(500, 1); }

// 10,000 graphs as two suites, for two cores.
TEST(SoakRandomGraphs, GiveTheJudgesNumbers) { check_graphs(test::soak_count(5000), 2); }
TEST(SoakMoreRandomGraphs, GiveTheJudgesNumbers) { check_graphs(test::soak_count(5000), 2, 5000); }

}  // namespace
}  // namespace weft::random_graphs::random_graphs_test
