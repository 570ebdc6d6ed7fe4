// The layers that transformers are made of, against plain loops.
#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "weft/nn.h"
#include "weft/session.h"

namespace weft::test::transformer_layers_test {
namespace {

Array wave(const Shape& shape, double phase) {
  Array x(shape, DType::kF32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, std::sin(0.7 * static_cast<double>(i) + phase));
  return x;
}

void expect_near(const Array& got, const std::vector<double>& want, double tolerance = 1e-6) {
  ASSERT_EQ(static_cast<std::size_t>(got.elements()), want.size());
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.at(static_cast<std::int64_t>(i)), want[i], tolerance) << i;
}

const Dim kRow{"row", 3}, kModel{"model", 4}, kPlace{"place", 3};

TEST(RmsNorm, DividesByTheRootMeanSquare) {
  for (const bool one_scale : {false, true}) {
    Graph g;
    const Tensor x = g.input("x", {kRow, kModel});
    const Tensor y = nn::rms_norm(x, kModel, {.epsilon = 0.5, .one_scale = one_scale});
    Session session{Mesh()};
    Executable step = session.compile(g, Layout(), {.fetch = {y}});
    const Array scale = wave(one_scale ? Shape{} : Shape{kModel}, 1), given = wave(x.shape(), 2);
    session.set_value("rms_norm/scale", scale);
    std::vector<double> want;
    for (std::int64_t i = 0; i < 12; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < 4; ++j) sum += given.at(i / 4 * 4 + j) * given.at(i / 4 * 4 + j);
      want.push_back(given.at(i) / std::sqrt(sum / 4 + 0.5) * scale.at(one_scale ? 0 : i % 4));
    }
    expect_near(step.run({{x, given}})[y], want);
  }
}

// Its hand-made derivatives against those of the formula.
TEST(RmsNorm, HasTheDerivativesOfItsFormula) {
  for (const bool one_scale : {false, true}) {
    Graph g;
    const Tensor x = g.input("x", {kRow, kModel}), dy = g.input("dy", {kRow, kModel});
    const Tensor y = nn::rms_norm(x, kModel, {.one_scale = one_scale});
    const Tensor scale = g.variables()[0];
    const Tensor plain = x * rsqrt(mean(square(x), {kModel}) + 1e-6) * scale;
    const Tensors got = gradients({y}, {x, scale}, {dy}), want = gradients({plain}, {x, scale}, {dy});
    Session session{Mesh()};
    Executable step = session.compile(g, Layout(), {.fetch = {got[0], got[1], want[0], want[1]}});
    session.set_value("rms_norm/scale", wave(scale.shape(), 1));
    const Values values = step.run({{x, wave(x.shape(), 2)}, {dy, wave(x.shape(), 3)}});
    for (std::size_t i : {0u, 1u}) EXPECT_LE(relative_difference(values[got[i]], values[want[i]]), 1e-6);
  }
}

TEST(LayerNorm, MayHaveNoBias) {
  Graph g;
  const Tensor x = g.input("x", {kRow, kModel}), dy = g.input("dy", {kRow, kModel});
  const Tensor y = nn::layer_norm(x, kModel, {.bias = false});
  ASSERT_EQ(g.variables().size(), 1u);
  const Tensor scale = g.variables()[0], centred = x - mean(x, {kModel});
  const Tensor plain = centred * rsqrt(mean(square(centred), {kModel}) + 1e-6) * scale;
  const Tensors got = gradients({y}, {x, scale}, {dy}), want = gradients({plain}, {x, scale}, {dy});
  Session session{Mesh()};
  Executable step = session.compile(g, Layout(), {.fetch = {y, plain, got[0], got[1], want[0], want[1]}});
  session.set_value("layer_norm/scale", wave({kModel}, 1));
  const Values values = step.run({{x, wave(x.shape(), 2)}, {dy, wave(x.shape(), 3)}});
  EXPECT_LE(relative_difference(values[y], values[plain]), 1e-6);
  for (std::size_t i : {0u, 1u}) EXPECT_LE(relative_difference(values[got[i]], values[want[i]]), 1e-6);
}

Array places() { return Array({kPlace}, std::vector<std::int32_t>{0, 5, 2}); }

TEST(PositionLayers, Sinusoids) {
  Graph g;
  const Dim model{"model", 6};
  const Tensor at = g.input("at", {kPlace}, DType::kI32);
  const Tensor y = nn::sinusoids(at, model);
  EXPECT_EQ(y.shape(), (Shape{kPlace, model}));
  std::vector<double> want;
  for (const double place : {0.0, 5.0, 2.0})
    for (int i = 0; i < 6; ++i) {
      const double angle = place * std::pow(10000, -(i % 3) / 2.0);
      want.push_back(i < 3 ? std::sin(angle) : std::cos(angle));
    }
  expect_near(eval(y, {{at, places()}}), want);
}

TEST(PositionLayers, Rotary) {
  Graph g;
  const Tensor x = g.input("x", {kRow, kPlace, kModel}), at = g.input("at", {kPlace}, DType::kI32);
  const Tensor y = nn::rotary(x, at, kModel, 100);
  const Array given = wave(x.shape(), 0);
  std::vector<double> want;
  for (std::int64_t i = 0; i < given.elements(); ++i) {
    const double place = places().at(i / 4 % 3), angle = place * std::pow(100, -2.0 * static_cast<double>(i % 2) / 4);
    const bool second = i % 4 >= 2;
    const double other = given.at(second ? i - 2 : i + 2);
    want.push_back(given.at(i) * std::cos(angle) + (second ? other : -other) * std::sin(angle));
  }
  expect_near(eval(y, {{x, given}, {at, places()}}), want);
}

// T5's table for 32 buckets up to 128, where it is known by heart.
TEST(PositionLayers, RelativeBuckets) {
  const auto buckets = [](const std::vector<std::int32_t>& distances, bool both_ways) {
    Graph g;
    const Dim dim{"n", static_cast<std::int64_t>(distances.size())};
    const Tensor x = g.input("x", {dim}, DType::kI32);
    const Tensor y = nn::relative_buckets(x, {.both_ways = both_ways, .reach = 200});
    return eval(y, {{x, Array({dim}, distances)}}).values();
  };
  EXPECT_EQ(buckets({0, -1, -15, -16, -18, -19, -127, -128, -200, 1, 7}, false),
            (std::vector<double>{0, 1, 15, 16, 16, 17, 31, 31, 31, 0, 0}));
  EXPECT_EQ(buckets({0, -1, -7, -8, -11, -12, -16, -64, -127, -200, 1, 7, 8, 64, 200}, true),
            (std::vector<double>{0, 1, 7, 8, 8, 9, 10, 14, 15, 15, 17, 23, 24, 30, 31}));
}

TEST(AttendWithStoredScores, IsAttend) {
  const Dim length{"length", 3}, memory{"memory", 3}, d_kv{"d_kv", 4};
  Graph g;
  const Tensor q = g.input("q", {kRow, length, d_kv}), k = g.input("k", {kRow, memory, d_kv});
  const Tensor bias = g.input("bias", {length, memory}), ids = g.input("ids", {length}, DType::kI32);
  AttendOptions how{.causal = true,
                          .length = "length",
                          .bias = bias,
                          .query_segments = ids,
                          .memory_segments = rename(ids, length, "memory"),
                          .scale = 0.3};
  const Tensor blocked = attend(q, k, k, memory, d_kv, how);
  how.extra_logit = -1e9;  // a class without a share
  const Tensor difference = attend(q, k, k, memory, d_kv, how) - blocked;
  const Feeds feeds = {{q, wave(q.shape(), 0)},
                       {k, wave(k.shape(), 1)},
                       {bias, wave(bias.shape(), 2)},
                       {ids, Array({length}, std::vector<std::int32_t>{1, 1, 2})}};
  for (const double x : eval(difference, feeds).values()) EXPECT_NEAR(x, 0, 1e-6);
}

TEST(AttendWithStoredScores, AnExtraLogitTakesItsShare) {
  const Dim memory{"memory", 2}, d_kv{"d_kv", 1};
  Graph g;
  const Tensor q = constant(g, 0.0, {d_kv}), k = constant(g, 0.0, {memory, d_kv}), v = constant(g, 3.0, {memory, d_kv});
  const Tensor y = attend(q, k, v, memory, d_kv, {.extra_logit = std::log(4.0)});
  EXPECT_NEAR(eval(y).at(0), 1, 1e-6);
}

TEST(AttendWithStoredScores, DrawsMayBeSharedAlongADim) {
  const Dim length{"length", 16}, memory{"memory", 4}, d_kv{"d_kv", 1};
  Graph g;
  const Tensor q = constant(g, 0.0, {length, d_kv}), k = constant(g, 0.0, {memory, d_kv}), v = k + 1.0;
  const std::vector<double> shared =
      eval(attend(q, k, v, "memory", "d_kv", {.keep = 0.5, .same_draw = {"length"}})).values();
  EXPECT_EQ(shared, std::vector<double>(16, shared[0]));
  const std::vector<double> apart = eval(attend(q, k, v, "memory", "d_kv", {.keep = 0.5})).values();
  EXPECT_NE(apart, std::vector<double>(16, apart[0]));
  for (const double y : apart) EXPECT_EQ(y, std::round(y * 2) / 2) << "a sum of weights 1/4, each divided by 1/2";
}

TEST(ProjectedLoss, SharesSmoothedTargets) {
  const Dim batch{"batch", 2}, vocab{"vocab", 5};
  Graph g;
  const Tensor hidden = g.input("hidden", {batch, kModel}), ids = g.input("ids", {batch}, DType::kI32);
  const Tensor kernel = constant(g, wave({vocab, kModel}, 1)), parts = constant(g, 3.0);
  const Tensor loss =
      nn::projected_cross_entropy(hidden, ids, batch, kModel, vocab,
                                  {.z_loss = 0.01, .label_smoothing = 0.2, .denominator = parts, .kernel = kernel});
  const Tensor logits = einsum({hidden, kernel}, {batch, vocab});
  const Tensor soft = one_hot(ids, vocab, 0.8 + 0.04, 0.04);
  const Tensor each = cross_entropy(logits, soft, vocab, 0.01);
  const Tensor wanted = reduce_sum(select(greater_equal(ids, 0.0), each, 0.0)) / 3.0;
  EXPECT_TRUE(g.variables().empty());
  const Array given = wave(hidden.shape(), 0), targets({batch}, std::vector<std::int32_t>{3, -1});
  const Feeds feeds = {{hidden, given}, {ids, targets}};
  EXPECT_NEAR(eval(loss, feeds).item(), eval(wanted, feeds).item(), 1e-6);
}

TEST(Activation, HasAName) {
  Graph g;
  const Tensor x = g.input("x", {kRow});
  for (const std::string& name : nn::activations()) {
    const nn::Activation f = nn::activation(name);
    EXPECT_EQ(static_cast<bool>(f), name != "linear");
    if (!f) continue;
    EXPECT_EQ(f(x, Site::current()).shape(), x.shape());
  }
  EXPECT_USER_ERROR(nn::activation("rely"), "there is no activation 'rely'", "nn::activation", "did you mean 'relu'?",
                    "the activations are: linear, relu");
}

}  // namespace
}  // namespace weft::test::transformer_layers_test
