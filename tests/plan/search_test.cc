// The search against brute force: every assignment of dims to axes, compiled and priced, whether the search would refuse
// it early or not.
#include "plan/search.h"

#include <limits>

#include "plan/demands.h"
#include "support/expect_error.h"
#include "weft/detail/target.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::search_test {
namespace {

constexpr const char* kFlat = R"(
processors = 8
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-6
pointwise = 1e10
random = 1e8
[[link]]
name = "box"
topology = "switch"
sides = [8]
latency = 1e-6
bandwidth = 1e9
)";

constexpr const char* kLevels = R"(
processors = 8
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-7
pointwise = 1e10
random = 1e8
[[link]]
name = "pair"
topology = "switch"
sides = [2]
latency = 1e-7
bandwidth = 2e10
[[link]]
name = "net"
topology = "switch"
sides = [4]
latency = 1e-5
bandwidth = 2e8
)";

struct Sizes {
  std::int64_t batch, io, hidden;
};

// relu(x w) v, with a step of momentum; layers of equal shapes.
StepFamily perceptron(const Sizes& sizes, std::int64_t layers) {
  StepFamily family;
  family.layers = {layers};
  family.build = [sizes](const std::vector<std::int64_t>& count, std::int64_t, bool) {
    const Dim batch{"batch", sizes.batch}, io{"io", sizes.io}, hidden{"hidden", sizes.hidden};
    Graph g;
    Tensor x = g.input("x", {batch, io});
    for (std::int64_t i = 0; i < count[0]; ++i) {
      const Tensor w = g.variable("w" + std::to_string(i), {io, hidden}, init::zeros());
      const Tensor v = g.variable("v" + std::to_string(i), {hidden, io}, init::zeros());
      x = x + einsum({relu(einsum({x, w}, {batch, hidden})), v}, {batch, io});
    }
    const Tensor loss = mean(x * x);
    const auto optimizer = optim::make_optimizer({.name = "momentum"}, loss, g.variables());
    return StepGraph{g, {loss}, optimizer->updates(), false, {}};
  };
  return family;
}

// Everything that a search needs.
struct Bench {
  Bench(StepFamily made, const char* description, int processors)
      : family(std::move(made)),
        machine(Machine::parse(description, "test")),
        processors(processors),
        graphs(family),
        predictor(graphs, machine, engine_target("cpu")),
        rules(graphs.parts(1, false)->front().graph->data(), graphs.parts(1, false)->front().graph->wanted()),
        bound(*graphs.parts(1, false), rules, family.batch, machine, processors, engine_target("cpu")),
        search({rules, graphs, predictor, bound, nullptr, machine}) {}

  Demands demands(std::int64_t memory) const {
    PlanOptions options;
    options.memory_bytes = memory;
    options.most_axes = 2;
    return demands_of({options, rules, machine, processors});
  }

  StepFamily family;
  Machine machine;
  int processors;
  FoldedGraphs graphs;
  Predictor predictor;
  SplitRules rules;
  WorkBound bound;
  Search search;
};

struct Candidate {
  Choice choice;
  FoldedPrediction priced;
};

// All roles of all axes of all ordered meshes, and all storage layouts. The partitioner alone decides what is legal.
std::vector<Candidate> brute_force(Bench& bench) {
  std::vector<Candidate> all;
  const DimSet roles = DimSet{1} << bench.rules.dims().size();
  for (const std::vector<int>& sizes : factorisations(bench.processors, 2, true)) {
    const std::size_t n = sizes.size();
    for (DimSet code = 0; code < (n == 1 ? roles : roles * roles); ++code)
      for (AxisSet stored = 0; stored < AxisSet{1} << n; ++stored)
        for (int level = stored ? 1 : 0; level <= (stored ? 3 : 0); ++level) {
          Choice choice;
          for (std::size_t i = 0; i < n; ++i) choice.axes.push_back({sizes[i], i == 0 ? code % roles : code / roles});
          choice.stored = stored;
          choice.level = level;
          try {
            const PlanChoice named = weft::named(choice, bench.rules, bench.family.batch);
            all.push_back({choice, bench.predictor.folded(named, 0)});
          } catch (const UserError&) {
          }
        }
  }
  return all;
}

double best_of(Bench& bench, const std::vector<Candidate>& all, std::int64_t memory) {
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : all) {
    const Prediction& p = candidate.priced.predicted;
    if (p.bytes() <= memory) best = std::min(best, p.seconds);
    if (p.bytes() <= memory || p.seconds >= best) continue;
    PlanChoice named = weft::named(candidate.choice, bench.rules, bench.family.batch);
    named.recompute = Recompute::kCompiler;
    try {
      const Prediction smaller = bench.predictor.folded(named, memory).predicted;
      if (smaller.bytes() <= memory) best = std::min(best, smaller.seconds);
    } catch (const UserError&) {
    }
  }
  return best;
}

struct Case {
  Sizes sizes;
  std::int64_t layers;
  const char* machine;
  int processors;
};

class PlanSearch : public ::testing::TestWithParam<Case> {};

TEST_P(PlanSearch, FindsWhatBruteForceFinds) {
  const Case c = GetParam();
  Bench bench(perceptron(c.sizes, c.layers), c.machine, c.processors);
  const std::vector<Candidate> all = brute_force(bench);
  ASSERT_FALSE(all.empty());
  std::vector<std::int64_t> bytes;
  for (const Candidate& candidate : all) bytes.push_back(candidate.priced.predicted.bytes());
  std::ranges::sort(bytes);
  for (const std::int64_t memory : {bytes.front() - 1, bytes.front(), bytes[bytes.size() / 8], bytes.back()}) {
    const Found found = bench.search.run(bench.demands(memory), 3, {});
    const double best = best_of(bench, all, memory);
    SCOPED_TRACE(memory);
    ASSERT_EQ(found.best.empty(), best == std::numeric_limits<double>::infinity());
    if (found.best.empty()) continue;
    EXPECT_DOUBLE_EQ(found.best.front().value, best) << found.best.front().named.text();
    EXPECT_DOUBLE_EQ(found.bound, best);
  }
}

TEST_P(PlanSearch, BoundsAreBelowPrices) {
  const Case c = GetParam();
  Bench bench(perceptron(c.sizes, c.layers), c.machine, c.processors);
  for (const Candidate& candidate : brute_force(bench)) {
    std::vector<int> sizes;
    for (const AxisRole& axis : candidate.choice.axes) sizes.push_back(axis.size);
    const MeshGroups groups(bench.machine, sizes);
    const double bound = bench.bound.seconds(candidate.choice, groups, false);
    const PlanChoice named = weft::named(candidate.choice, bench.rules, bench.family.batch);
    EXPECT_LE(bound, candidate.priced.predicted.seconds * (1 + 1e-9)) << named.text();
    EXPECT_LE(bench.bound.variable_bytes(candidate.choice),
              static_cast<double>(candidate.priced.predicted.variable_bytes) + 0.5)
        << named.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, PlanSearch,
                         ::testing::Values(Case{{8, 16, 32}, 1, kFlat, 4}, Case{{8, 16, 32}, 3, kFlat, 4},
                                           Case{{64, 16, 32}, 2, kFlat, 4}, Case{{512, 64, 64}, 2, kFlat, 4},
                                           Case{{4, 64, 256}, 4, kFlat, 4}, Case{{8, 16, 32}, 2, kLevels, 4},
                                           Case{{512, 64, 64}, 3, kLevels, 4}, Case{{4, 64, 256}, 2, kLevels, 4},
                                           Case{{6, 12, 24}, 2, kFlat, 6}, Case{{15, 30, 45}, 2, kFlat, 3},
                                           Case{{64, 64, 64}, 1, kLevels, 8}, Case{{10, 14, 6}, 2, kFlat, 2}));

StepGraph with_a_dim_of_one() {
  Graph g;
  const Tensor x = g.input("x", {{"batch", 8}, {"one", 1}});
  return {g, {x * x}, {}, false, {}};
}

TEST(PlanErrors, DemandsThatNameNothing) {
  const StepFamily family = perceptron({8, 16, 32}, 1);
  const Machine machine = Machine::parse(kFlat, "test");
  const auto planned = [&](const PlanOptions& options, int processors = 4) {
    return plan(family, machine, processors, options);
  };
  PlanOptions fix, axis, axes, allow, forbid, mesh;
  fix.fix = "bach:data";
  EXPECT_USER_ERROR(planned(fix), "no tensor of the graph has dim 'bach'", "did you mean 'batch'?",
                    "the dims that can be split are: batch, hidden, io", "plan.unknown-dim");
  axis.mesh = Mesh::parse("data:4");
  axis.fix = "batch:rows";
  EXPECT_USER_ERROR(planned(axis), "the mesh has no axis 'rows'",
                    "name an axis of the mesh, or leave the mesh out: then --fix names its axes", "plan.unknown-axis");
  axes.fix = "batch:a+b io:c+d";
  EXPECT_USER_ERROR(planned(axes), "the fixed rules name 4 axes: a, b, c, d", "name at most 3 axes",
                    "plan.too-many-axes");
  allow.allow = {"nothing"};
  EXPECT_USER_ERROR(planned(allow), "--allow", "plan.unknown-dim");
  mesh.mesh = Mesh::parse("data:2");
  EXPECT_USER_ERROR(planned(mesh), "cannot plan for 4 processors on a mesh of 2",
                    "give a number from 1 on, and as many as the mesh has if there is one", "plan.bad-processors");
  EXPECT_USER_ERROR(planned({}, 0), "cannot plan for 0 processors", "plan.bad-processors");
  EXPECT_USER_ERROR(planned({}, 16), "machine test has 8 processors, not 16",
                    "ask for up to 8, or give a larger machine", "plan.too-many-processors");
  PlanOptions odd;
  odd.fix = "one:data";
  EXPECT_USER_ERROR(plan(with_a_dim_of_one(), machine, 4, odd),
                    "dim 'one' cannot be split: an op needs it whole, or its size is 1",
                    "name dims that can be split: batch", "plan.dim-cannot-be-split");
}

TEST(PlanErrors, NamesTheSmallestSetOfDemandsThatConflict) {
  PlanOptions options;
  options.memory_bytes = 64;
  options.forbid = {"io"};
  options.fix = "batch:data";
  EXPECT_USER_ERROR(plan(perceptron({8, 16, 32}, 1), Machine::parse(kFlat, "test"), 4, options),
                    "no candidate meets memory of 64 B on 4 processors of test",
                    "give up one of these demands: memory of 64 B; or use more processors", "plan.nothing-fits");
}

TEST(Plan, APrimeNumberOfProcessorsThatDividesNothingLeavesThemIdle) {
  const Plan made = plan(perceptron({8, 16, 32}, 2), Machine::parse(kFlat, "test"), 7);
  EXPECT_EQ(made.layout.text(), "");
  EXPECT_EQ(made.gap, 0);
}

TEST(Plan, PinnedRulesHold) {
  PlanOptions options;
  options.fix = "batch:rows io:-";
  const Plan made = plan(perceptron({64, 64, 64}, 2), Machine::parse(kFlat, "test"), 4, options);
  EXPECT_NE(made.mesh.find("rows"), -1);
  EXPECT_NE(made.layout.text().find("batch:rows"), std::string::npos) << made.layout.text();
  EXPECT_EQ(made.layout.text().find("io"), std::string::npos) << made.layout.text();
}

}  // namespace
}  // namespace weft::search_test
