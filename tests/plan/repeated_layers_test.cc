// The repeated layers that are found in graphs, against graphs that are built with fewer layers.
#include "plan/repeated_layers.h"

#include "plan/families.h"

namespace weft::search_test {
namespace {

struct LayersCase {
  const char* name;
  StepFamily (*family)(std::int64_t layers);
};

std::ostream& operator<<(std::ostream& out, const LayersCase& c) { return out << c.name; }

// Layers whose gradients are clipped by the norm of all of them.
StepFamily normed(std::int64_t layers) {
  StepFamily family;
  family.layers = {layers};
  family.build = [](const std::vector<std::int64_t>& count, std::int64_t, bool) {
    const Dim batch{"batch", 16}, io{"io", 16}, hidden{"hidden", 32};
    Graph g;
    Tensor y = einsum({g.input("x", {batch, {"pixel", 8}}), g.variable("in", {{"pixel", 8}, io})}, {batch, io});
    for (std::int64_t i = 0; i < count[0]; ++i) {
      const auto scope = g.scope("block" + std::to_string(i));
      const Tensor w = g.variable("w", {io, hidden}), v = g.variable("v", {hidden, io});
      y = y + einsum({tanh(einsum({y, w}, {batch, hidden})), v}, {batch, io});
    }
    const Tensor out = g.variable("out", {io, {"digit", 8}});
    const Tensor z = einsum({y, out}, {batch, {"digit", 8}});
    return trained(g, mean(z * z), "adam");
  };
  return family;
}

StepFamily plain(std::int64_t layers) { return perceptron({8, 16, 32}, layers); }

class PlanLayers : public ::testing::TestWithParam<LayersCase> {};

// A graph whose layers are cut costs what a graph with that many layers costs, under every storage level.
TEST_P(PlanLayers, AreCutAsIfTheGraphHadFewer) {
  const StepFamily family = GetParam().family(7);
  const std::optional<RepeatedLayers> layers = RepeatedLayers::find(family.build({7}, 1, false));
  ASSERT_TRUE(layers);
  EXPECT_GE(layers->count(), 6);  // the first layer may differ in its backward pass
  const Machine machine = Machine::parse(kLevels, "test");
  const Target& target = engine_target("cpu");
  for (const std::int64_t count : {4, 5, 6}) {
    const StepFamily few = GetParam().family(count);
    StepFamily cut = few;
    cut.layers = {};
    cut.build = [&](const auto&, std::int64_t, bool) { return layers->with(layers->count() - 7 + count); };
    FoldedGraphs want_graphs(few), got_graphs(cut);
    const Predictor want(want_graphs, machine, target), got(got_graphs, machine, target);
    for (int level = 0; level <= 3; ++level) {
      PlanChoice choice;
      choice.mesh = Mesh::parse("data:2 model:2");
      choice.layout = Layout::parse("batch:data");
      if (level) choice.store = Store::parse("*:data", level);
      SCOPED_TRACE(choice.text());
      const Prediction a = got.whole(choice, 0), b = want.whole(choice, 0);
      EXPECT_NEAR(a.seconds, b.seconds, b.seconds * 1e-9);
      EXPECT_EQ(a.flops, b.flops);
      EXPECT_EQ(a.bytes(), b.bytes());
    }
  }
}

// A plan of the graph is the plan of the family.
TEST_P(PlanLayers, PlansOfGraphsAreThoseOfFamilies) {
  const StepFamily family = GetParam().family(7);
  const Machine machine = Machine::parse(kLevels, "test");
  const Plan by_graph = plan(family.build({7}, 1, false), machine, 4), by_family = plan(family, machine, 4);
  EXPECT_TRUE(by_graph.folding.starts_with("three and four of the ")) << by_graph.folding;
  EXPECT_EQ(by_graph.gap, 0);
  EXPECT_LE(by_graph.predicted.seconds, by_family.predicted.seconds * 1.01);
}

INSTANTIATE_TEST_SUITE_P(Graphs, PlanLayers,
                         ::testing::Values(LayersCase{"perceptron", plain}, LayersCase{"attention", attention},
                                           LayersCase{"normed", normed}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(PlanLayers, AreNotFoundWhereSomethingReadsOfEachByItself) {
  Graph g;
  const Dim batch{"batch", 8}, io{"io", 16};
  Tensor x = g.input("x", {batch, io});
  Tensors all;
  for (int i = 0; i < 6; ++i)
    all.push_back(x = tanh(einsum({x, g.variable("w" + std::to_string(i), {io, {"out", 16}})}, {batch, io})));
  EXPECT_FALSE(RepeatedLayers::find({g, {concat(all, io)}, {}, false, {}}));
}

TEST(PlanLayers, AreNotFoundInGraphsWithFewOrUnlikeLayers) {
  EXPECT_FALSE(RepeatedLayers::find(plain(3).build({3}, 1, false)));
  EXPECT_FALSE(RepeatedLayers::find(recurrence().build({}, 1, false)));
  const Plan made = plan(plain(2).build({2}, 1, false), Machine::parse(kFlat, "test"), 4);
  EXPECT_EQ(made.folding, "the whole graph, because no layers that repeat were found in it");
}

}  // namespace
}  // namespace weft::search_test
