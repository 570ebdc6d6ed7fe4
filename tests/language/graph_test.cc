// Graphs: names, scopes, ordinals, variables, the user's lines, phases; and the first values of variables.
#include <gtest/gtest.h>

#include <cmath>

#include "base/index.h"
#include "base/str.h"
#include "language/op_def.h"
#include "weft/weft.h"

namespace weft::graph_test {
namespace {

const Dim kA{"a", 4}, kB{"b", 6};

TEST(Graph, NamesAreScopesOpAndOrdinal) {
  Graph g;
  const Tensor x = g.input("x", {kA});
  EXPECT_EQ(exp(x).name(), "exp");
  EXPECT_EQ(exp(x).name(), "exp_1");
  {
    const auto layer = g.scope("layer_0");
    EXPECT_EQ(exp(x).name(), "layer_0/exp");
    const auto inner = g.scope("attention");
    EXPECT_EQ(exp(x).name(), "layer_0/attention/exp");
    EXPECT_EQ(g.variable("w", {kA}).name(), "layer_0/attention/w");
    EXPECT_EQ(g.input("mask", {kA}).name(), "layer_0/attention/mask");
  }
  EXPECT_EQ(exp(x).name(), "exp_2");
  EXPECT_EQ(exp(x).named("heat").name(), "heat");
}

// A name given by named() is for people; what keys random numbers does not change.
TEST(Graph, NamedKeepsTheKey) {
  Graph g;
  const Tensor x = random_uniform(g, {kA});
  x.named("noise");
  EXPECT_EQ(g.data()->node(x.id()).full_name, "random_uniform");
  EXPECT_EQ(g.data()->node(x.id()).ordinal, 0);
  EXPECT_EQ(g.data()->node(random_uniform(g, {kA}).id()).ordinal, 1);
}

TEST(Graph, ListsVariablesAndInputs) {
  Graph g;
  const Tensor v = g.variable("v", {kA}), w = g.variable("w", {kA}, init::zeros(), {.trainable = false});
  const Tensor u = g.variable("u", {kA}, init::zeros(), {.activation = DType::kBF16});
  const Tensor x = g.input("x", {kA});
  EXPECT_EQ(g.variables(), (Tensors{v, u}));  // in order of declaration
  EXPECT_EQ(g.all_variables(), (Tensors{v, w, u}));
  EXPECT_EQ(g.inputs(), Tensors{x});
  EXPECT_EQ(variable_name(u), "u");  // behind its cast
  EXPECT_EQ(u.dtype(), DType::kBF16);
}

TEST(Graph, NamesOfVariablesAreFreeInOtherScopes) {
  Graph g;
  g.variable("w", {kA});
  const auto scope = g.scope("again");
  EXPECT_EQ(variable_name(g.variable("w", {kA})), "again/w");
}

TEST(Graph, EveryOpHasTheUsersLine) {
  Graph g;
  const auto [x, first] = std::pair(g.input("x", {kA, kB}), Site::current().line());
  const Tensor y = x * 2.0 + exp(x);  // one line, three ops
  const Tensor z = softmax(x, kB);    // a function of several ops
  EXPECT_EQ(x.site().line(), first);
  for (const NodeId n : ids(x.id().node, g.data()->nodes.end_id())) {
    if (n == x.id().node) continue;
    const Node& node = g.data()->nodes[n];
    EXPECT_EQ(node.site.line(), first + (n <= y.id().node ? 1 : 2)) << node.name;
    EXPECT_TRUE(std::string(node.site.file_name()).ends_with("graph_test.cc")) << node.site.file_name();
  }
  EXPECT_EQ(z.site().line(), first + 2);
}

// Derivative ops, constants and sums included, stand on the line of the op they are of.
TEST(Graph, DerivativesHaveTheLineOfTheirOp) {
  Graph g;
  const auto [x, first] = std::pair(g.input("x", {kA, kB}), Site::current().line());
  const Tensor h = tanh(x);
  const Tensor s = softmax(h, kB);
  const Tensor p = reduce_product(s, {kA}) + reduce_max(h, {kA});
  const Tensor y = reduce_sum(p);
  const NodeId begin = g.data()->nodes.end_id();
  const unsigned call = std::pair(gradients({y}, {x}), Site::current().line()).second;
  for (const NodeId n : ids(begin, g.data()->nodes.end_id())) {
    const Node& node = g.data()->nodes[n];
    const unsigned line = node.site.line();
    EXPECT_TRUE((line > first && line <= first + 4) || (line == call && n == begin))
        << node.name << " at line " << line - first << " after the input";
    EXPECT_EQ(node.phase, Phase::kBackward) << node.name;
  }
}

TEST(Graph, PhasesAreStamped) {
  Graph g;
  const Tensor w = g.variable("w", {kA}), x = g.input("x", {kA});
  const Tensor loss = reduce_sum(square(w - x));
  const NodeId forward = g.data()->nodes.end_id();
  const Updates updates = optim::sgd(loss, {w}, 0.1);
  const Tensor after = exp(x);
  bool updating = false;
  for (const NodeId n : g.data()->nodes.ids()) {
    const Phase phase = g.data()->nodes[n].phase;
    if (n < forward || n == after.id().node) {
      EXPECT_EQ(phase, Phase::kForward);
      continue;
    }
    if (phase == Phase::kUpdate) updating = true;
    const bool is_rate = g.data()->nodes[n].op->name == "constant";  // made before its gradients are
    EXPECT_TRUE(is_rate || phase == (updating ? Phase::kUpdate : Phase::kBackward)) << g.data()->nodes[n].name;
  }
  EXPECT_EQ(g.data()->node(updates[0].id()).phase, Phase::kUpdate);
}

std::vector<double> first_values(const Shape& shape, const Init& init) {
  Graph g;
  return eval(g.variable("w", shape, init)).values();
}

struct Moments {
  double mean = 0, deviation = 0, least = INFINITY, most = -INFINITY;
  explicit Moments(const std::vector<double>& values) {
    for (const double x : values) {
      mean += x / static_cast<double>(values.size());
      least = std::min(least, x);
      most = std::max(most, x);
    }
    for (const double x : values) deviation += (x - mean) * (x - mean) / static_cast<double>(values.size());
    deviation = std::sqrt(deviation);
  }
};

const Shape kMany{{"in", 100}, {"out", 400}};
constexpr double kNoise = 4 / 200.0;  // four deviations of a mean of 40,000

TEST(Init, Constants) {
  EXPECT_EQ(first_values({kA}, init::zeros()), std::vector<double>(4, 0.0));
  EXPECT_EQ(first_values({kA}, init::ones()), std::vector<double>(4, 1.0));
  EXPECT_EQ(first_values({kA}, init::constant(2.5)), std::vector<double>(4, 2.5));
  EXPECT_EQ(first_values({kA}, {}), std::vector<double>(4, 0.0));
}

TEST(Init, ValuesAreMatchedByName) {
  const Array values({{"b", 2}, {"a", 3}}, std::vector<float>{0, 1, 2, 3, 4, 5});
  EXPECT_EQ(first_values({{"a", 3}, {"b", 2}}, init::values(values)), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Init, Distributions) {
  const Moments uniform(first_values(kMany, init::uniform(-1, 3)));
  EXPECT_NEAR(uniform.mean, 1, 1.2 * kNoise);
  EXPECT_NEAR(uniform.deviation, 4 / std::sqrt(12.0), kNoise);
  EXPECT_GE(uniform.least, -1);
  EXPECT_LT(uniform.most, 3);
  const Moments normal(first_values(kMany, init::normal(2, 5)));
  EXPECT_NEAR(normal.mean, 5, 2 * kNoise);
  EXPECT_NEAR(normal.deviation, 2, 2 * kNoise);
  EXPECT_GT(normal.most, 5 + 2 * 3);
}

TEST(Init, TruncatedStaysWithinTwoDeviations) {
  const Moments cut(first_values(kMany, init::truncated_normal(3, 1)));
  EXPECT_NEAR(cut.mean, 1, 3 * kNoise);
  EXPECT_NEAR(cut.deviation, 3 * 0.8796256610342398, 3 * kNoise);
  EXPECT_GE(cut.least, 1 - 6);
  EXPECT_LE(cut.most, 1 + 6);
  EXPECT_GT(cut.most, 1 + 5.9);
}

TEST(Init, VarianceScalingGoesByDims) {
  const Shape in{{"in", 100}}, out{{"out", 400}};
  const auto deviation = [&](double scale, init::Fan fan, bool uniform) {
    return Moments(first_values(kMany, init::variance_scaling(scale, fan, in, out, uniform))).deviation;
  };
  for (const bool uniform : {false, true}) {
    EXPECT_NEAR(deviation(1, init::Fan::kIn, uniform), 0.1, 0.1 * kNoise);
    EXPECT_NEAR(deviation(1, init::Fan::kOut, uniform), 0.05, 0.05 * kNoise);
    EXPECT_NEAR(deviation(1, init::Fan::kAverage, uniform), std::sqrt(1 / 250.0), kNoise * std::sqrt(1 / 250.0));
    EXPECT_NEAR(deviation(2, init::Fan::kIn, uniform), std::sqrt(0.02), kNoise * std::sqrt(0.02));
  }
  EXPECT_NEAR(Moments(first_values(kMany, init::fan_in(in))).deviation, 0.1, 0.1 * kNoise);
  const Moments bounded(first_values(kMany, init::variance_scaling(1, init::Fan::kIn, in, out, true)));
  EXPECT_LE(bounded.most, std::sqrt(3.0) * 0.1);
  const Moments cut(first_values(kMany, init::variance_scaling(1, init::Fan::kIn, in, out)));
  EXPECT_LE(cut.most, 2 * 0.1 / 0.8796256610342398 + 1e-7);
}

TEST(Init, VariablesOfOneShapeDiffer) {
  Graph g;
  const Tensor v = g.variable("v", {kA}, init::normal(1)), w = g.variable("w", {kA}, init::normal(1));
  Session session{Mesh()};
  const Values out = session.compile(g, Layout(), {.fetch = {v, w}}).run();
  EXPECT_NE(out[v].values(), out[w].values());
}

}  // namespace
}  // namespace weft::graph_test
