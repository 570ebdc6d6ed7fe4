// What conformance cannot see of plain functions: how draws are spread, and derivatives that are made up.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/str.h"
#include "weft/ops.h"
#include "weft/session.h"

namespace weft::functions_test {
namespace {

const Dim kRows{"rows", 20000}, kClasses{"classes", 4};

// How often each class was drawn, as a part of all draws.
std::vector<double> shares(const Array& drawn) {
  std::vector<double> share(static_cast<std::size_t>(kClasses.size));
  for (std::int64_t i = 0; i < drawn.elements(); ++i) share[static_cast<std::size_t>(drawn.at(i))] += 1;
  for (double& x : share) x /= static_cast<double>(drawn.elements());
  return share;
}

std::vector<double> shares(const std::vector<double>& logits, const SampleOptions& options) {
  Graph g;
  const Tensor table = constant(g, Array({kClasses}, logits, DType::kF32));
  return shares(eval(sample_categorical(broadcast(table, {kRows, kClasses}), kClasses, options)));
}

// Five deviations of a share of 20000 draws are below 0.018.
void expect_shares(const std::vector<double>& got, const std::vector<double>& weights) {
  double sum = 0;
  for (double w : weights) sum += w;
  for (std::size_t i = 0; i < weights.size(); ++i) EXPECT_NEAR(got[i], weights[i] / sum, 0.018) << i;
}

TEST(SampleCategorical, DrawsByTheSoftmaxOfTheLogits) {
  expect_shares(shares({0, 1, 2, -1}, {}), {1, std::exp(1.0), std::exp(2.0), std::exp(-1.0)});
}

TEST(SampleCategorical, KeepsTheLikeliestThatReachAProbability) {
  const std::vector<double> logits = {std::log(0.15), std::log(0.5), std::log(0.05), std::log(0.3)};
  expect_shares(shares(logits, {.keep_top_p = 0.75}), {0, 0.5, 0, 0.3});
  expect_shares(shares(logits, {.keep_top_p = 0.81}), {0.15, 0.5, 0, 0.3});
  expect_shares(shares(logits, {.keep_top_p = 0.01}), {0, 1, 0, 0});
  expect_shares(shares(logits, {}), {0.15, 0.5, 0.05, 0.3});
  // The temperature counts: at 0.5 the shares are as the squares, 0.0225 : 0.25 : 0.0025 : 0.09.
  expect_shares(shares(logits, {.temperature = 0.5, .keep_top_p = 0.6}), {0, 1, 0, 0});
  expect_shares(shares(logits, {.temperature = 0.5, .keep_top_p = 0.7}), {0, 0.25, 0, 0.09});
  expect_shares(shares(logits, {.keep_top_k = 3, .keep_top_p = 0.83}), {0, 0.5, 0, 0.3});  // 0.8 of 0.95
  expect_shares(shares({1, 1, 1, 0}, {.keep_top_p = 0.1}), {1, 1, 1, 0});                  // equals stay together
}

TEST(SampleCategorical, TemperatureDividesTheLogits) {
  expect_shares(shares({0, 1, 2, -1}, {.temperature = 2}), {1, std::exp(0.5), std::exp(1.0), std::exp(-0.5)});
  EXPECT_EQ(shares({0, 1, 2, -1}, {.temperature = 0}), (std::vector<double>{0, 0, 1, 0}));
}

TEST(SampleCategorical, KeepsOnlyTheLargest) {
  expect_shares(shares({0, 1, 2, -1}, {.keep_top_k = 2}), {0, std::exp(1.0), std::exp(2.0), 0});
  // The third largest is tied with the second: of both none is left.
  EXPECT_EQ(shares({1, 1, 2, -1}, {.keep_top_k = 2}), (std::vector<double>{0, 0, 1, 0}));
  expect_shares(shares({0, 1, 2, -1}, {.keep_top_k = 4}), {1, std::exp(1.0), std::exp(2.0), std::exp(-1.0)});
}

TEST(RandomGumbel, HasItsMeanAndDeviation) {
  Graph g;
  const Array x = eval(random_gumbel(g, {kRows}));
  double sum = 0, squares = 0;
  for (double v : x.values()) {
    sum += v;
    squares += v * v;
  }
  const double n = static_cast<double>(x.elements()), mean = sum / n;
  EXPECT_NEAR(mean, 0.5772, 0.05);
  EXPECT_NEAR(std::sqrt(squares / n - mean * mean), 1.2825, 0.05);
}

TEST(MultiplicativeJitter, StaysWithinEpsilon) {
  Graph g;
  const std::vector<double> x = eval(multiplicative_jitter(constant(g, 2, {kRows}), 0.25)).values();
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*low, 1.5);
  EXPECT_LT(*low, 1.51);
  EXPECT_LT(*high, 2.5);
  EXPECT_GT(*high, 2.49);
}

TEST(Dropout, TakesAProbabilityAtRunTime) {
  Graph g;
  const Tensor keep = g.input("keep", {}), y = dropout(constant(g, 3, {kRows}), keep);
  Session session{Mesh()};
  Executable step = session.compile(g, {}, {.fetch = {y}});
  for (const double p : {0.25, 0.5, 1.0, 0.0}) {
    std::int64_t kept = 0;
    for (const double v : step.run({{keep, Array::scalar(p)}})[y].values()) {
      kept += v != 0;
      if (v != 0) {
        ASSERT_NEAR(v, 3 / p, 1e-5);
      }
    }
    EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(kRows.size), p, 0.018) << p;
  }
}

// dy = [6, 8] has a root mean square of sqrt(50): clipped to 1, it is dy / sqrt(50); a small one passes.
TEST(ClipActivationGradient, ScalesTheDerivativeAlone) {
  const Dim n{"n", 2};
  for (const auto& [mesh, layout] : {std::pair{"", ""}, std::pair{"p:2", "n:p"}}) {
    Graph g;
    const Tensor x = g.input("x", {n}), y = clip_activation_gradient(x), dy = g.input("dy", {n});
    const Tensor dx = gradients({y}, {x}, {dy})[0];
    Session session(Mesh::parse(mesh));
    Executable step = session.compile(g, Layout::parse(layout), {.fetch = {y, dx}, .compute_as = DType::kF64});
    const Feeds large{{x, Array({n}, std::vector<float>{3, -5})}, {dy, Array({n}, std::vector<float>{6, 8})}};
    const Feeds small{{x, Array({n}, std::vector<float>{3, -5})}, {dy, Array({n}, std::vector<float>{0.5, 0})}};
    const Values got = step.run(large);
    EXPECT_EQ(got[y].values(), (std::vector<double>{3, -5}));
    EXPECT_NEAR(got[dx].at(0), 6 / std::sqrt(50.0), 1e-12);
    EXPECT_NEAR(got[dx].at(1), 8 / std::sqrt(50.0), 1e-12);
    EXPECT_EQ(step.run(small)[dx].values(), (std::vector<double>{0.5, 0}));
  }
}

TEST(Sort, IsStableBothWays) {
  Graph g;
  const Dim n{"n", 5};
  const Tensor x = constant(g, Array({n}, std::vector<float>{2, 1, 2, 0, 1}));
  EXPECT_EQ(eval(sort(x, n).values).values(), (std::vector<double>{0, 1, 1, 2, 2}));
  EXPECT_EQ(eval(sort(x, n).indices).values(), (std::vector<double>{3, 1, 4, 0, 2}));
  EXPECT_EQ(eval(sort(x, n, true).indices).values(), (std::vector<double>{0, 2, 1, 4, 3}));
  EXPECT_EQ(eval(take_along(x, sort(x, n).indices, n)).values(), (std::vector<double>{0, 1, 1, 2, 2}));
}

TEST(Functions, ComparisonsHaveOperators) {
  Graph g;
  const Dim a{"a", 3};
  const Tensor x = g.input("x", {a});
  const Feeds feeds{{x, Array({a}, {1, 2, 3}, DType::kF32)}};
  using V = std::vector<double>;
  EXPECT_EQ(eval(x < 2.0, feeds).values(), (V{1, 0, 0}));
  EXPECT_EQ(eval(x <= 2.0, feeds).values(), (V{1, 1, 0}));
  EXPECT_EQ(eval(2.0 > x, feeds).values(), (V{1, 0, 0}));
  EXPECT_EQ(eval(x >= x, feeds).values(), (V{1, 1, 1}));
  EXPECT_EQ((x > 2.0).dtype(), DType::kBool);
}

}  // namespace
}  // namespace weft::functions_test
