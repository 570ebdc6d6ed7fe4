// Random numbers: new at every step, the same bits under every layout and precision, keyed by seed and name alone.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/str.h"
#include "weft/weft.h"

namespace weft::random_test {
namespace {

const Dim kA{"a", 8}, kB{"b", 12};
const char* const kLayouts[] = {"", "a:p", "b:p", "a:p b:q", "b:p a:q", "a:p+q", "a:q+p", "b:q+p"};

// One op of every distribution.
struct Draws {
  Graph g;
  Tensors all;
  Draws() {
    all = {random_uniform(g, {kA, kB}, -1, 3), random_normal(g, {kA, kB}, 1, 2), random_truncated_normal(g, {kB, kA}),
           random_bernoulli(g, {kA, kB}, 0.3), random_uniform(g, {kA, kB})};
  }
};

std::vector<std::vector<double>> two_steps(const std::string& mesh, const std::string& layout, std::uint64_t seed,
                                           std::optional<DType> as = {}) {
  const Draws draws;
  Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.seed = seed});
  Executable step = session.compile(draws.g, Layout::parse(layout), {.fetch = draws.all, .compute_as = as});
  std::vector<std::vector<double>> results;
  for (int i = 0; i < 2; ++i) {
    const Values out = step.run();
    for (const Tensor& x : draws.all) results.push_back(out[x].values());
  }
  return results;
}

TEST(Random, IsNewAtEveryStepAndForEveryOp) {
  const auto results = two_steps("", "", 7);
  std::set<std::vector<double>> unlike(results.begin(), results.end());
  EXPECT_EQ(unlike.size(), results.size());
}

TEST(Random, HangsOnTheSeed) {
  EXPECT_EQ(two_steps("", "", 7), two_steps("", "", 7));
  EXPECT_NE(two_steps("", "", 7), two_steps("", "", 8));
}

TEST(Random, HasTheSameBitsUnderEveryLayout) {
  const auto want = two_steps("", "", 3);
  for (const char* layout : kLayouts) EXPECT_EQ(two_steps("p:2 q:2", layout, 3), want) << layout;
  EXPECT_EQ(two_steps("p:3", "b:p", 3), want);
}

TEST(Random, DrawsTheSameInFloatAndDouble) {
  const auto floats = two_steps("", "", 5), doubles = two_steps("p:2 q:2", "a:p b:q", 5, DType::kF64);
  for (std::size_t k = 0; k < floats.size(); ++k)
    for (std::size_t i = 0; i < floats[k].size(); ++i)
      ASSERT_EQ(floats[k][i], static_cast<float>(doubles[k][i])) << "op " << k << ", element " << i;
}

// What else is computed, and the order of other ops, does not matter; scope and ordinal do.
TEST(Random, HangsOnTheOpsNameAlone) {
  const auto draw = [](const std::string& scope, int before, int others) {
    Graph g;
    for (int i = 0; i < others; ++i) exp(constant(g, 1));
    const auto in = g.scope(scope);
    for (int i = 0; i < before; ++i) random_uniform(g, {kA});
    return eval(random_uniform(g, {kA})).values();
  };
  EXPECT_EQ(draw("x", 0, 0), draw("x", 0, 5));
  EXPECT_NE(draw("x", 0, 0), draw("x", 1, 0));
  EXPECT_NE(draw("x", 0, 0), draw("y", 0, 0));
}

TEST(Random, VariablesAreFilledByTheirNameAlone) {
  const auto first = [](const std::string& mesh, const std::string& layout, std::uint64_t seed, bool other_before) {
    Graph g;
    if (other_before) g.variable("v", {kA}, init::normal(1));
    const Tensor w = g.variable("w", {kA, kB}, init::normal(1));
    Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.seed = seed});
    return session.compile(g, Layout::parse(layout), {.fetch = {w}}).run()[w].values();
  };
  const auto want = first("", "", 0, false);
  EXPECT_EQ(first("", "", 0, true), want);
  for (const char* layout : kLayouts) EXPECT_EQ(first("p:2 q:2", layout, 0, false), want) << layout;
  EXPECT_NE(first("", "", 1, false), want);
}

TEST(Dropout, KeepsScalesAndPassesTheSameToTheDerivative) {
  Graph g;
  const Dim n{"n", 20000};
  const Tensor x = constant(g, 3, {n});
  const Tensor y = dropout(x, 0.8), dx = gradients({y}, {x})[0];
  Session session(Mesh::parse("p:4"));
  const Values out = session.compile(g, Layout::parse("n:p"), {.fetch = {y, dx}}).run();
  int kept = 0;
  for (std::int64_t i = 0; i < n.size; ++i) {
    const double value = out[y].at(i);
    if (value != 0) {
      ++kept;
      EXPECT_FLOAT_EQ(static_cast<float>(value), 3.75f);
    }
    EXPECT_NEAR(out[dx].at(i), value / 3, 1e-6);
  }
  EXPECT_NEAR(kept / 20000.0, 0.8, 4 * std::sqrt(0.8 * 0.2 / 20000));
}

TEST(Dropout, SharesDrawsOverDimsThatTheNoiseLacks) {
  Graph g;
  const Tensor y = dropout(constant(g, 1, {kA, kB}), 0.5, {kA});
  const Array values = eval(y);
  double sum = 0;
  for (std::int64_t i = 0; i < values.elements(); ++i) {
    EXPECT_EQ(values.at(i), values.at(i / kB.size * kB.size));
    sum += values.at(i);
  }
  EXPECT_GT(sum, 0);
  EXPECT_LT(sum, 2.0 * static_cast<double>(values.elements()));
}

TEST(Dropout, OfProbabilityOneIsTheTensorItself) {
  Graph g;
  const Tensor x = g.input("x", {kA});
  EXPECT_EQ(dropout(x, 1), x);
}

}  // namespace
}  // namespace weft::random_test
