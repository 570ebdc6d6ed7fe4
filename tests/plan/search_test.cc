// Plans of small graphs, and the errors of demands that cannot be met.
#include "plan/families.h"
#include "support/expect_error.h"

namespace weft::search_test {
namespace {

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

TEST(PlanErrors, DemandsThatContradictEachOther) {
  const StepFamily family = perceptron({8, 16, 32}, 1);
  const Machine machine = Machine::parse(kFlat, "test");
  PlanOptions forbid, allow;
  forbid.fix = allow.fix = "batch:data";
  forbid.forbid = {"batch"};
  EXPECT_USER_ERROR(plan(family, machine, 4, forbid),
                    "dim 'batch' must be split by --fix \"batch:data\", and must not be by --forbid batch",
                    "give up one of the two", "plan.contradiction");
  allow.allow = {"io", "hidden"};
  EXPECT_USER_ERROR(plan(family, machine, 4, allow),
                    "dim 'batch' must be split by --fix \"batch:data\", and must not be by --allow io,hidden");
}

TEST(PlanErrors, StoppedBeforeACandidateFits) {
  PlanOptions options;
  options.memory_bytes = 64;
  options.stop = [] { return true; };
  EXPECT_USER_ERROR(plan(perceptron({8, 16, 32}, 1), Machine::parse(kFlat, "test"), 4, options),
                    "the search was stopped after ", ", before it found a candidate that fits into 64 B",
                    "give it more time (--seconds), more memory (--memory) or more processors",
                    "plan.stopped-too-early");
}

TEST(PlanErrors, AMeshOfTooManyAxes) {
  const StepFamily family = perceptron({8, 16, 32}, 1);
  Machine machine = Machine::parse(kFlat, "test");
  machine.processors = 512;
  PlanOptions options;
  options.mesh = Mesh::parse("a:2 b:2 c:2 d:2 e:2 f:2 g:2 h:2 i:2");
  EXPECT_USER_ERROR(plan(family, machine, 512, options),
                    "the mesh has 9 axes, and a search goes through all sets of axes",
                    "give at most 8 axes of more than one processor", "plan.too-large-mesh");
  options.mesh = Mesh::parse("data:4 a:1 b:1 c:1 d:1 e:1 f:1 g:1 h:1 i:1");
  const Plan with_ones = plan(family, machine, 4, options);
  options.mesh = Mesh::parse("data:4");
  EXPECT_EQ(with_ones.predicted.seconds, plan(family, machine, 4, options).predicted.seconds);
}

// Two products of half the rows are faster than one here.
TEST(Plan, TriesMicrobatchesWhereProductsOfMoreRowsAreSlower) {
  const StepFamily family = perceptron({512, 64, 64}, 1, {1, 2, 4, 8});
  Machine machine = Machine::parse(kFlat, "test");
  machine.rates[0].products = {{DType::kF32, {{{32, 512}, {1}, {1}}, {1e11, 1e9}}, {1, 1, 1}}};
  EXPECT_GT(plan(family, machine, 1).microbatches, 1);
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
  EXPECT_NE(
      made.summary().find("only one of each 7 processors does work of its own: choose a number of processors that "
                          "divides the sizes of dims"),
      std::string::npos)
      << made.summary();
}

TEST(Plan, ListsChoicesThatDiffer) {
  const Plan made = plan(perceptron({64, 64, 64}, 2), Machine::parse(kLevels, "test"), 8);
  const auto differ = [](const PlanChoice& a, const PlanChoice& b, double share) {
    return std::abs(a.predicted.seconds / b.predicted.seconds - 1) > share ||
           std::abs(static_cast<double>(a.predicted.bytes()) / static_cast<double>(b.predicted.bytes()) - 1) > share;
  };
  ASSERT_GT(made.best.size(), 1U);
  for (std::size_t i = 1; i < made.frontier.size(); ++i)
    EXPECT_TRUE(differ(made.frontier[i - 1], made.frontier[i], 0.004));
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
