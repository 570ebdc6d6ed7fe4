// Adafactor against its formula in double, and its rules about dims, names and steps.
#include <gtest/gtest.h>

#include <cmath>

#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::test::adafactor_test {
namespace {

using optim::Adafactor;
using optim::AdafactorOptions;

const Dim kRow{"row", 3}, kColumn{"column", 4}, kLayer{"layer", 2};

// Numbers of both signs, none of them near 0.
std::vector<double> numbers(std::int64_t count, double phase) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(std::sin(1.7 * static_cast<double>(i) + phase) * 1.5 + (i % 2 ? 0.3 : -0.3));
  return all;
}

// Adafactor on one weight of rows x columns, or on one of a single row, in double. The gradient is scale * w.
struct ByHand {
  AdafactorOptions o;
  std::size_t rows, columns;
  std::vector<double> w, scale;
  std::vector<double> v = std::vector<double>(w.size()), m = v, row_means = std::vector<double>(rows),
                      column_means = std::vector<double>(columns);

  static double rms(const std::vector<double>& x) {
    double sum = 0;
    for (double a : x) sum += a * a;
    return std::sqrt(sum / static_cast<double>(x.size()));
  }

  bool factored() const {
    return o.factored && static_cast<std::int64_t>(std::min(rows, columns)) >= o.min_dim_size_to_factor;
  }

  void step(std::int64_t t, double rate) {
    const double b = o.decay_beta2.value_or(0), n = static_cast<double>(t - o.step_offset);
    const double rho =
        o.decay_beta2 ? b * (1 - std::pow(b, n - 1)) / (1 - std::pow(b, n)) : 1 - std::pow(n, -o.decay_exponent);
    std::vector<double> g(w), x(w.size()), row(rows), column(columns);
    for (std::size_t i = 0; i < w.size(); ++i) {
      g[i] *= scale[i];
      const double s = g[i] * g[i] + o.epsilon1;
      v[i] = rho * v[i] + (1 - rho) * s;
      row[i / columns] += s / static_cast<double>(columns);
      column[i % columns] += s / static_cast<double>(rows);
    }
    double row_mean = 0;  // the same as the mean over columns
    for (std::size_t r = 0; r < rows; ++r) {
      row_means[r] = rho * row_means[r] + (1 - rho) * row[r];
      row_mean += row_means[r] / static_cast<double>(rows);
    }
    for (std::size_t c = 0; c < columns; ++c) column_means[c] = rho * column_means[c] + (1 - rho) * column[c];
    for (std::size_t i = 0; i < w.size(); ++i)
      x[i] = g[i] / std::sqrt(factored() ? row_means[i / columns] * column_means[i % columns] / row_mean : v[i]);
    const double clip = o.clipping_threshold ? std::max(1.0, rms(x) / *o.clipping_threshold) : 1;
    const double size = o.multiply_by_parameter_scale ? std::max(rms(w), o.epsilon2) : 1;
    for (std::size_t i = 0; i < w.size(); ++i) {
      const double u = rate * size * x[i] / clip;
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * u;
      w[i] -= o.beta1 != 0 ? m[i] : u;
    }
  }
};

// loss = sum(scale w^2) / 2.
struct Bowl {
  explicit Bowl(const Shape& shape)
      : first(numbers(shape.elements(), 0.2)),
        scale(numbers(shape.elements(), 1.1)),
        w(graph.variable("w", shape, init::values(Array(shape, first, DType::kF32)))),
        loss(reduce_sum(constant(graph, Array(shape, scale, DType::kF32)) * square(w)) * 0.5) {}

  Graph graph;
  std::vector<double> first, scale;
  Tensor w, loss;
};

void expect_near(const Array& got, const std::vector<double>& want, const char* what) {
  ASSERT_EQ(got.shape().elements(), static_cast<std::int64_t>(want.size())) << what;
  for (std::size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got.at(static_cast<std::int64_t>(i)), want[i], 1e-5) << what << " " << i;
}

// Six steps on [row=3 column=4].
void expect_by_hand(const AdafactorOptions& o) {
  Bowl bowl({kRow, kColumn});
  const Adafactor adafactor(bowl.loss, bowl.graph.variables(), o);
  ByHand want{.o = o, .rows = 3, .columns = 4, .w = bowl.first, .scale = bowl.scale};
  Session session{Mesh()};
  Executable step = session.compile(bowl.graph, {}, {.update = adafactor.updates()});
  for (std::int64_t t = 1 + o.step_offset; t <= 6 + o.step_offset; ++t) {
    step.run(adafactor.feeds(t, 0.1));
    want.step(t, 0.1);
  }
  expect_near(session.value("w"), want.w, "w");
  if (o.beta1 != 0) expect_near(session.value("w.m"), want.m, "m");
  if (want.factored()) {
    expect_near(session.value("w.vr"), want.row_means, "vr");
    expect_near(session.value("w.vc"), want.column_means, "vc");
  } else {
    expect_near(session.value("w.v"), want.v, "v");
  }
  EXPECT_EQ(session.variables().size(), 2u + (want.factored() ? 1 : 0) + (o.beta1 != 0 ? 1 : 0));
}

TEST(Adafactor, AsByDefault) { expect_by_hand({}); }
TEST(Adafactor, Factored) { expect_by_hand({.min_dim_size_to_factor = 3}); }
TEST(Adafactor, TooSmallToFactor) { expect_by_hand({.min_dim_size_to_factor = 4}); }
TEST(Adafactor, FactoringForbidden) { expect_by_hand({.factored = false, .min_dim_size_to_factor = 1}); }
TEST(Adafactor, WithFirstMoment) { expect_by_hand({.min_dim_size_to_factor = 3, .beta1 = 0.7}); }
TEST(Adafactor, WithoutParameterScale) { expect_by_hand({.multiply_by_parameter_scale = false}); }
TEST(Adafactor, ClippedHarder) { expect_by_hand({.min_dim_size_to_factor = 3, .clipping_threshold = 0.25}); }
TEST(Adafactor, WithoutClipping) { expect_by_hand({.min_dim_size_to_factor = 3, .clipping_threshold = {}}); }
TEST(Adafactor, WithAnotherDecay) { expect_by_hand({.decay_exponent = 0.5}); }
TEST(Adafactor, WithAdamsDecay) { expect_by_hand({.min_dim_size_to_factor = 3, .decay_beta2 = 0.9}); }
TEST(Adafactor, FromAnOffset) { expect_by_hand({.step_offset = 100}); }
TEST(Adafactor, WithLargeEpsilons) { expect_by_hand({.min_dim_size_to_factor = 3, .epsilon1 = 0.5, .epsilon2 = 7}); }

TEST(Adafactor, OfEqualDimsTheEarlierIsTheLargest) {
  Graph g;
  const Tensor w = g.variable("w", {{"a", 4}, {"b", 4}, {"c", 2}}, init::ones());
  const Adafactor adafactor(reduce_sum(square(w)), g.variables(), {.min_dim_size_to_factor = 4});
  Session session{Mesh()};
  session.compile(g, {}, {.update = adafactor.updates()});
  EXPECT_EQ(session.value("w.vr").shape(), (Shape{{"b", 4}, {"c", 2}}));
  EXPECT_EQ(session.value("w.vc").shape(), (Shape{{"a", 4}, {"c", 2}}));
}

TEST(Adafactor, AScalarIsAWeightToo) {
  Graph g;
  const Tensor w = g.variable("w", {}, init::constant(2));
  const Adafactor adafactor(square(w), g.variables());
  Session session{Mesh()};
  session.compile(g, {}, {.update = adafactor.updates()}).run(adafactor.feeds(1, 0.1));
  EXPECT_NEAR(session.value("w").item(), 2 - 0.1 * 2, 1e-6);
}

// Each weight of a stack is trained as if it were alone, under every layout.
TEST(Adafactor, AStackIsManyWeights) {
  const AdafactorOptions o{.min_dim_size_to_factor = 2, .beta1 = 0.5, .stacked_dims = {"layer"}};
  for (const char* layout : {"", "layer:p", "column:p", "layer:q column:p", "row:r layer:p"}) {
    Bowl bowl({kRow, kLayer, kColumn});
    const Adafactor adafactor(bowl.loss, bowl.graph.variables(), o);
    Session session(Mesh::parse("p:2 q:2 r:3"));
    Executable step = session.compile(bowl.graph, Layout::parse(layout), {.update = adafactor.updates()});
    for (int t = 1; t <= 3; ++t) step.run(adafactor.feeds(t, 0.3));
    for (std::size_t layer = 0; layer < 2; ++layer) {
      ByHand want{.o = o, .rows = 3, .columns = 4, .w = std::vector<double>(12), .scale = std::vector<double>(12)};
      const auto at = [&](std::size_t i) { return (i / 4 * 2 + layer) * 4 + i % 4; };
      for (std::size_t i = 0; i < 12; ++i) want.w[i] = bowl.first[at(i)], want.scale[i] = bowl.scale[at(i)];
      for (int t = 1; t <= 3; ++t) want.step(t, 0.3);
      for (std::size_t i = 0; i < 12; ++i)
        EXPECT_NEAR(session.value("w").at(static_cast<std::int64_t>(at(i))), want.w[i], 1e-5) << layout << " " << i;
    }
    EXPECT_EQ(session.value("w.vr").shape(), (Shape{kRow, kLayer}));
    EXPECT_EQ(session.value("w.vc").shape(), (Shape{kLayer, kColumn}));
  }
}

TEST(Adafactor, AStackedDimIsNeverFactored) {
  Bowl bowl({kRow, kLayer});
  const Adafactor adafactor(bowl.loss, bowl.graph.variables(),
                            {.min_dim_size_to_factor = 2, .stacked_dims = {"layer"}});
  Session session{Mesh()};
  session.compile(bowl.graph, {}, {.update = adafactor.updates()});
  EXPECT_EQ(session.value("w.v").shape(), (Shape{kRow, kLayer}));
}

TEST(Adafactor, SomeNamesAreNotScaled) {
  Graph g;
  const Tensor big = g.variable("big.wo", {kRow}, init::constant(8)),
               other = g.variable("wo", {kRow}, init::constant(8));
  const Adafactor adafactor(reduce_sum(big + other), g.variables(), {.exclude_from_parameter_scale = {"g_w", "none"}});
  Session session{Mesh()};
  session.compile(g, {}, {.update = adafactor.updates()}).run(adafactor.feeds(1, 0.125));
  expect_near(session.value("big.wo"), {7.875, 7.875, 7.875}, "not scaled");
  expect_near(session.value("wo"), {7, 7, 7}, "scaled by 8");
}

TEST(Adafactor, ScalarsAreComputedInDouble) {
  Bowl bowl({kRow});
  const Adafactor adafactor(bowl.loss, bowl.graph.variables());
  const Feeds first = adafactor.feeds(1, 0.5), late = adafactor.feeds(1000000, 0.5);
  ASSERT_EQ(first.size(), 3u);
  EXPECT_EQ(first[0].second.item(), 0.5);
  EXPECT_EQ(first[1].second.item(), 0);
  EXPECT_EQ(first[2].second.item(), 1);
  EXPECT_DOUBLE_EQ(late[1].second.item(), 1 - std::pow(1e6, -0.8));
  EXPECT_DOUBLE_EQ(late[2].second.item(), std::pow(1e6, -0.8));
}

TEST(Adafactor, HasARateByDefault) {
  Bowl bowl({kRow}), plain({kRow});
  const Adafactor adafactor(bowl.loss, bowl.graph.variables());
  EXPECT_DOUBLE_EQ(adafactor.default_rate(1), 0.01);
  EXPECT_DOUBLE_EQ(adafactor.default_rate(10000), 0.01);
  EXPECT_DOUBLE_EQ(adafactor.default_rate(1000000), 0.001);
  const Adafactor unscaled(plain.loss, plain.graph.variables(), {.multiply_by_parameter_scale = false});
  EXPECT_DOUBLE_EQ(unscaled.default_rate(1), 0.0005);
}

}  // namespace
}  // namespace weft::test::adafactor_test
