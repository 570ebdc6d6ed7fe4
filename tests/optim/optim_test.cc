// Optimizers against their formulas, step by step, in double.
#include "weft/optim.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "weft/ops.h"

namespace weft::test::optim_test {
namespace {

const Dim kX{"x", 4};
const std::vector<double> kFirst = {1.0, -2.0, 0.5, 3.0}, kScale = {1.0, 0.5, -2.0, 0.1};

// loss = sum(scale w^2) / 2, so that the gradient is scale * w.
struct Bowl {
  Graph graph;
  Tensor w = graph.variable("w", {kX}, init::values(Array({kX}, kFirst, DType::kF32)));
  Tensor scale = constant(graph, Array({kX}, kScale, DType::kF32));
  Tensor loss = reduce_sum(scale * square(w)) * 0.5;
};

void expect_near(const Array& got, const std::vector<double>& want) {
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.at(static_cast<std::int64_t>(i)), want[i], 2e-6) << i;
}

TEST(Sgd, StepsAgainstTheGradient) {
  Bowl bowl;
  Session session{Mesh()};
  Executable step = session.compile(
      bowl.graph, {}, {.fetch = {bowl.loss}, .update = optim::sgd(bowl.loss, bowl.graph.variables(), 0.1)});
  std::vector<double> w = kFirst;
  for (int t = 0; t < 3; ++t) {
    step.run();
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= 0.1 * kScale[i] * w[i];
    expect_near(session.value("w"), w);
  }
}

TEST(Sgd, TheRateMayBeAnInput) {
  Bowl bowl;
  const Tensor rate = bowl.graph.input("rate", {});
  Session session{Mesh()};
  Executable step = session.compile(bowl.graph, {}, {.update = optim::sgd(bowl.loss, bowl.graph.variables(), rate)});
  std::vector<double> w = kFirst;
  for (double r : {0.1, 0.5}) {
    step.run({{rate, Array::scalar(r)}});
    for (std::size_t i = 0; i < w.size(); ++i) w[i] -= r * kScale[i] * w[i];
    expect_near(session.value("w"), w);
  }
}

TEST(Optimizers, RefuseALossThatIsNotAScalar) {
  Bowl bowl;
  const Tensor each = square(bowl.w).named("each");
  const char* what = "the loss 'each' [x=4] is not a scalar";
  const char* fix = "give mean(loss), or reduce_sum(loss) for the sum over its elements";
  EXPECT_USER_ERROR(optim::sgd(each, {bowl.w}, 0.1), what, fix, "optim_test.cc");
  EXPECT_USER_ERROR(optim::Adam(each, {bowl.w}), what, fix, "optim_test.cc");
  EXPECT_NO_THROW(optim::Momentum(mean(each), {bowl.w}));
}

// A weight that stays as it was is hardly meant; there are ways to say that it is.
TEST(Optimizers, RefuseVariablesThatTheLossDoesNotDependOn) {
  Bowl bowl;
  const Tensor idle = bowl.graph.variable("idle", {kX}, init::ones());
  const Tensor stopped = bowl.graph.variable("stopped", {kX}, init::ones());
  const Tensor loss = (bowl.loss + reduce_sum(stop_gradient(stopped))).named("loss");
  const char* what = "the loss 'loss' does not depend on variables to be trained: 'idle', 'stopped'";
  const char* fix =
      "let the loss use them, leave them out of the optimizer's variables, or declare them with "
      "VariableOptions::trainable = false";
  EXPECT_USER_ERROR(optim::sgd(loss, bowl.graph.variables(), 0.1), what, fix, "optim_test.cc");
  EXPECT_USER_ERROR(optim::Adafactor(loss, bowl.graph.variables()), what, fix, "optim_test.cc");
  EXPECT_EQ(optim::sgd(loss, {bowl.w}, 0.1).size(), 1u);
  const optim::Rules frozen = {{.pattern = "idle|stopped", .train = false}};
  EXPECT_EQ(optim::Sgd(loss, bowl.graph.variables(), {.rules = frozen}).updates().size(), 1u);
  Bowl other;
  other.graph.variable("count", {}, init::zeros(), {.trainable = false});
  EXPECT_EQ(optim::sgd(other.loss, other.graph.variables(), 0.1).size(), 1u);
}

TEST(Sgd, KeepsTheSliceDtypeOfAVariable) {
  Graph g;
  const Tensor w = g.variable("w", {kX}, init::ones(), {.stored = DType::kF32, .activation = DType::kBF16});
  const Tensor loss = reduce_sum(cast(w, DType::kF32));
  Session session{Mesh()};
  Executable step = session.compile(g, {}, {.update = optim::sgd(loss, g.variables(), 1e-4)});
  step.run();
  expect_near(session.value("w"), {0.9999, 0.9999, 0.9999, 0.9999});  // bf16 would stay at 1
}

// Ten steps with the given options; compares weights and slots with the formula.
void expect_adam(const optim::AdamOptions& o) {
  Bowl bowl;
  const optim::Adam adam(bowl.loss, bowl.graph.variables(), o);
  Session session{Mesh()};
  Executable step = session.compile(bowl.graph, {}, {.update = adam.updates()});
  std::vector<double> w = kFirst, m(4, 0), v(4, 0);
  for (int t = 1; t <= 10; ++t) {
    const double rate = 0.01 * t;
    step.run(adam.feeds(t, rate));
    const double first = o.bias_correction ? 1 - std::pow(o.beta1, t) : 1;
    const double second = o.bias_correction ? 1 - std::pow(o.beta2, t) : 1;
    for (std::size_t i = 0; i < 4; ++i) {
      const double g = kScale[i] * w[i];
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      w[i] -= rate / first * m[i] / (std::sqrt(v[i] / second) + o.epsilon) + rate * o.weight_decay * w[i];
    }
  }
  expect_near(session.value("w"), w);
  expect_near(session.value("w.m"), m);
  expect_near(session.value("w.v"), v);
}

TEST(Adam, AsByDefault) { expect_adam({}); }
TEST(Adam, WithOtherNumbers) { expect_adam({.beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1}); }
TEST(Adam, WithWeightDecay) { expect_adam({.weight_decay = 0.1}); }
TEST(Adam, WithoutBiasCorrection) { expect_adam({.weight_decay = 0.1, .bias_correction = false}); }

TEST(Adam, SomeNamesDoNotDecay) {
  Graph g;
  Tensor loss = constant(g, 0);
  for (const char* name : {"ln1.scale", "attention.bias", "planet", "wq"})
    loss = loss + reduce_sum(g.variable(name, {kX}, init::ones()) * 1e-30);
  const optim::Adam adam(loss, g.variables(),
                         {.weight_decay = 0.5, .exclude_from_weight_decay = {"^ln\\d_", "(bias|beta)$"}});
  Session session{Mesh()};
  session.compile(g, {}, {.update = adam.updates()}).run(adam.feeds(1, 0.2));
  EXPECT_NEAR(session.value("ln1.scale").at(0), 1, 1e-6);
  EXPECT_NEAR(session.value("attention.bias").at(0), 1, 1e-6);
  EXPECT_NEAR(session.value("planet").at(0), 0.9, 1e-6);
  EXPECT_NEAR(session.value("wq").at(0), 0.9, 1e-6);
}

TEST(Adam, NothingDecaysIfAllIsExcluded) {
  Bowl bowl;
  const optim::Adam adam(bowl.loss, bowl.graph.variables(), {.weight_decay = 0.5, .exclude_from_weight_decay = {"w"}});
  Session session{Mesh()};
  session.compile(bowl.graph, {}, {.update = adam.updates()}).run(adam.feeds(1, 0.1));
  expect_near(session.value("w"), {0.9, -1.9, 0.6, 2.9});
}

TEST(Adam, SlotsAreVariablesThatNoOptimizerTrains) {
  Bowl bowl;
  const optim::Adam adam(bowl.loss, bowl.graph.variables());
  EXPECT_EQ(bowl.graph.variables().size(), 1u);
  EXPECT_EQ(bowl.graph.all_variables().size(), 3u);
}

TEST(Adam, CorrectionsAreComputedInDouble) {
  Bowl bowl;
  const Feeds feeds = optim::Adam(bowl.loss, bowl.graph.variables()).feeds(1, 1.0);
  ASSERT_EQ(feeds.size(), 2u);
  EXPECT_DOUBLE_EQ(feeds[0].second.item(), 1 / (1 - 0.9));
  EXPECT_DOUBLE_EQ(feeds[1].second.item(), 1 / (1 - 0.999));
}

TEST(Momentum, StepsByTheNewVelocity) {
  for (double momentum : {0.9, 0.0}) {
    Bowl bowl;
    const optim::Momentum optimizer(bowl.loss, bowl.graph.variables(), {.momentum = momentum});
    Session session{Mesh()};
    Executable step = session.compile(bowl.graph, {}, {.update = optimizer.updates()});
    std::vector<double> w = kFirst, v(4, 0);
    for (int t = 1; t <= 5; ++t) {
      const double rate = 0.1 / t;
      step.run(optimizer.feeds(t, rate));
      for (std::size_t i = 0; i < 4; ++i) {
        v[i] = rate * kScale[i] * w[i] + momentum * v[i];
        w[i] -= v[i];
      }
      expect_near(session.value("w"), w);
      expect_near(session.value("w.v"), v);
    }
  }
}

TEST(Optim, MatchingChoosesVariablesByName) {
  Graph g;
  const Tensor a = g.variable("encoder.layer0.w", {kX}), b = g.variable("decoder.w", {kX});
  EXPECT_EQ(optim::matching(g.variables(), "coder_"), (Tensors{a, b}));
  EXPECT_EQ(optim::matching(g.variables(), "^decoder_"), Tensors{b});
  EXPECT_EQ(optim::matching(g.variables(), "layer[0-9]"), Tensors{a});
}

TEST(Optim, SeveralMayShareAGraph) {
  Graph g;
  const Tensor a = g.variable("a", {kX}, init::ones()), b = g.variable("b", {kX}, init::ones());
  const Tensor loss = reduce_sum(a + b);
  const optim::Momentum momentum(loss, optim::matching(g.variables(), "a"));
  const optim::Adafactor adafactor(loss, optim::matching(g.variables(), "b"));
  Updates updates = momentum.updates();
  Feeds feeds = momentum.feeds(1, 0.5);
  const optim::Optimizer& other = adafactor;
  for (const Tensor& update : other.updates()) updates.push_back(update);
  for (const auto& feed : other.feeds(1, 0.25)) feeds.push_back(feed);
  Session session{Mesh()};
  session.compile(g, {}, {.update = updates}).run(feeds);
  expect_near(session.value("a"), {0.5, 0.5, 0.5, 0.5});
  expect_near(session.value("b"), {0.75, 0.75, 0.75, 0.75});
}

TEST(Optim, SlotsAreF32WhateverTheWeightIs) {
  Graph g;
  const Tensor w = g.variable("w", {kX}, init::ones(), {.activation = DType::kBF16});
  const Tensor loss = reduce_sum(cast(w, DType::kF32));
  const optim::Adafactor adafactor(loss, g.variables(), {.beta1 = 0.5});
  Session session{Mesh()};
  session.compile(g, {}, {.update = adafactor.updates()}).run(adafactor.feeds(1, 2e-4));
  EXPECT_EQ(session.value("w.v").dtype(), DType::kF32);
  EXPECT_EQ(session.value("w.m").dtype(), DType::kF32);
  expect_near(session.value("w"), {0.9999, 0.9999, 0.9999, 0.9999});  // bf16 would stay at 1
}

TEST(Optim, UpdatesAreTheSameOnEveryLayout) {
  for (const char* layout : {"", "x:all"}) {
    Bowl bowl;
    const optim::Adam adam(bowl.loss, bowl.graph.variables());
    Session session(Mesh::parse("all:2"));
    const CompileOptions options{.fetch = {bowl.loss}, .update = adam.updates()};
    Executable step = session.compile(bowl.graph, Layout::parse(layout), options);
    EXPECT_NEAR(step.run(adam.feeds(1, 0.1)).scalar(bowl.loss), (1 + 2 - 0.5 + 0.9) / 2, 1e-6);
    expect_near(session.value("w"), {0.9, -1.9, 0.6, 2.9});
  }
}

}  // namespace
}  // namespace weft::test::optim_test
