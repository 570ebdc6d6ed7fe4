// What all optimizers share: the norm and clipping by it, rules by name, construction by name. On any layout.
#include <gtest/gtest.h>

#include <cmath>

#include "errors/lines.h"
#include "weft/optim.h"

namespace weft::test::clip_test {
namespace {

const Dim kBatch{"batch", 4}, kIn{"in", 4}, kHidden{"hidden", 8}, kOut{"out", 4};

// Two layers, a table that all of the batch reads, and a bias: gradients of several shardings.
struct Model {
  Graph graph;
  Tensor x = graph.input("x", {kBatch, kIn});
  Tensor w1 = graph.variable("first.w", {kIn, kHidden}, init::fan_in(kIn));
  Tensor bias = graph.variable("first.bias", {kHidden}, init::constant(0.5));
  Tensor w2 = graph.variable("second.w", {kHidden, kOut}, init::fan_in(kHidden));
  Tensor loss = reduce_sum(square(einsum({tanh(einsum({x, w1}, {kBatch, kHidden}) + bias), w2}, {kBatch, kOut})));

  Feeds feeds() const {
    std::vector<double> values;
    for (int i = 0; i < 16; ++i) values.push_back(std::sin(i + 1.0) * 2);
    return {{x, Array({kBatch, kIn}, values, DType::kF32)}};
  }
};

struct Result {
  double norm = 0;
  std::vector<Array> weights;
};

Result train(const optim::OptimizerOptions& options, const std::string& mesh, const std::string& layout,
             const Store& store = {}, int steps = 3) {
  const Model model;
  const auto optimizer = optim::make_optimizer(options, model.loss, model.graph.variables());
  Session session(Mesh::parse(mesh), wire::threads(), device::cpu(), {.store = store});
  Executable step = session.compile(model.graph, Layout::parse(layout),
                                    {.fetch = {optimizer->gradient_norm()}, .update = optimizer->updates()});
  Result result;
  for (int t = 1; t <= steps; ++t) {
    Feeds feeds = model.feeds();
    for (const auto& feed : optimizer->feeds(t, 0.05)) feeds.push_back(feed);
    result.norm = step.run(feeds).scalar(optimizer->gradient_norm());
  }
  for (const char* name : {"first.w", "first.bias", "second.w"}) result.weights.push_back(session.value(name));
  return result;
}

void expect_equal(const Result& got, const Result& want) {
  EXPECT_NEAR(got.norm, want.norm, 2e-6 * want.norm);
  for (std::size_t i = 0; i < want.weights.size(); ++i)
    EXPECT_LT(relative_difference(got.weights[i], want.weights[i]), 3e-6) << i;
}

TEST(Clip, ScalesAllGradientsByOneNumber) {
  const Result first = train({.name = "sgd"}, "", "", {}, 1);
  const Model model;
  const double limit = first.norm / 4;
  const Result clipped = train({.name = "sgd", .clip_norm = limit}, "", "", {}, 1);
  EXPECT_NEAR(clipped.norm, first.norm, 1e-5);  // the norm is that before clipping
  const Tensors variables = model.graph.variables();
  const Tensors gradients_of = gradients({model.loss}, variables);
  double squares = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Array before = eval(variables[i]), gradient = eval(gradients_of[i], model.feeds());
    for (std::int64_t j = 0; j < before.elements(); ++j) {
      squares += gradient.at(j) * gradient.at(j);
      EXPECT_NEAR(clipped.weights[i].at(j), before.at(j) - 0.05 * gradient.at(j) * limit / first.norm, 2e-6);
    }
  }
  EXPECT_NEAR(first.norm, std::sqrt(squares), 1e-5 * first.norm);
}

TEST(Clip, LeavesSmallGradientsAlone) {
  const Result plain = train({.name = "adam"}, "", "");
  const Result clipped = train({.name = "adam", .clip_norm = 1e6}, "", "");
  for (std::size_t i = 0; i < plain.weights.size(); ++i)
    EXPECT_EQ(relative_difference(clipped.weights[i], plain.weights[i]), 0) << i;
}

TEST(Clip, IsTheSameOnEveryLayout) {
  for (const char* name : {"sgd", "momentum", "adam", "adafactor"}) {
    const optim::OptimizerOptions options{.name = name, .weight_decay = 0.1, .clip_norm = 0.5};
    const Result want = train(options, "", "");
    EXPECT_GT(want.norm, 0.5);
    for (const auto& [mesh, layout] : std::vector<std::pair<std::string, std::string>>{
             {"a:2", "batch:a"}, {"a:2", "hidden:a"}, {"a:2 b:2", "batch:a hidden:b"}, {"a:2 b:2", "in:a out:b"}})
      expect_equal(train(options, mesh, layout), want);
    for (int level = 1; level <= 3; ++level) {
      expect_equal(train(options, "a:2", "batch:a", Store::parse("*:a", level)), want);
      expect_equal(train(options, "a:2 b:2", "batch:a hidden:b", Store::parse("*:a", level)), want);
    }
  }
}

TEST(Rules, TheFirstThatIsFoundHolds) {
  const optim::OptimizerOptions options{.name = "sgd",
                                        .weight_decay = 0.5,
                                        .rules = {{.pattern = "bias", .train = false},
                                                  {.pattern = "^first_", .rate_scale = 0.1, .weight_decay = 0.0},
                                                  {.pattern = "w$", .rate_scale = 0.0}}};
  const Model model;
  const Result trained = train(options, "", "", {}, 1);
  const Array first = eval(model.w1), slope = eval(gradients({model.loss}, {model.w1})[0], model.feeds());
  for (std::int64_t i = 0; i < first.elements(); ++i)
    EXPECT_NEAR(trained.weights[0].at(i), first.at(i) - 0.005 * slope.at(i), 2e-6);
  EXPECT_EQ(relative_difference(trained.weights[1], eval(model.bias)), 0);
  EXPECT_EQ(relative_difference(trained.weights[2], eval(model.w2)), 0);
}

TEST(Rules, WeightsDecayEachByItsOwn) {
  for (const char* name : {"sgd", "momentum", "adam", "adafactor"}) {
    Graph g;
    Tensor loss = constant(g, 0);
    for (const char* variable : {"a", "b", "c", "d"})
      loss = loss + reduce_sum(g.variable(variable, {kIn}, init::ones()) * 1e-30);
    const optim::OptimizerOptions options{.name = name,
                                          .weight_decay = 0.5,
                                          .rules = {{.pattern = "b", .weight_decay = 0.25},
                                                    {.pattern = "c", .weight_decay = 0.0},
                                                    {.pattern = "d", .rate_scale = 0.5}}};
    optim::OptimizerOptions kind = options;
    if (options.name == "adafactor") kind.clipping_threshold = 1e-30;  // its steps are of size 1 otherwise
    const auto optimizer = optim::make_optimizer(kind, loss, g.variables());
    Session session{Mesh()};
    session.compile(g, {}, {.update = optimizer->updates()}).run(optimizer->feeds(1, 0.2));
    EXPECT_NEAR(session.value("a").at(0), 0.9, 1e-6) << name;
    EXPECT_NEAR(session.value("b").at(0), 0.95, 1e-6) << name;
    EXPECT_NEAR(session.value("c").at(0), 1, 1e-6) << name;
    EXPECT_NEAR(session.value("d").at(0), 0.95, 1e-6) << name;
  }
}

TEST(Rules, NoVariableIsUpdatedTwice) {
  const Model model;
  const optim::Adam adam(model.loss, model.graph.variables(),
                         {.rules = {{.pattern = "w"}, {.pattern = "first"}, {.pattern = "bias", .train = false}}});
  EXPECT_EQ(adam.updates().size(), 9u);  // the bias is found by "first" first
  const Model other;
  const optim::Adam without(other.loss, other.graph.variables(), {.rules = {{.pattern = "bias", .train = false}}});
  EXPECT_EQ(without.updates().size(), 6u);
  EXPECT_EQ(other.graph.all_variables().size(), 3u + 4u);  // and no state of the bias
}

TEST(Rules, WhatIsNotTrainedHasNoPartInTheNorm) {
  const double all = train({.name = "sgd"}, "", "", {}, 1).norm;
  const double some = train({.name = "sgd", .rules = {{.pattern = "second", .train = false}}}, "", "", {}, 1).norm;
  const Model model;
  const Array slope = eval(gradients({model.loss}, {model.w2})[0], model.feeds());
  double squares = 0;
  for (double value : slope.values()) squares += value * value;
  EXPECT_NEAR(some * some + squares, all * all, 1e-4 * all * all);
}

TEST(MakeOptimizer, GivesTheOptionsToItsKind) {
  const Model model, twin, third;
  const auto made = optim::make_optimizer({.name = "adam", .beta1 = 0.5, .bias_correction = false}, model.loss,
                                          model.graph.variables());
  const optim::Adam adam(twin.loss, twin.graph.variables(), {.beta1 = 0.5, .bias_correction = false});
  EXPECT_NE(dynamic_cast<const optim::Adam*>(made.get()), nullptr);
  EXPECT_EQ(made->feeds(3, 0.1)[0].second.item(), adam.feeds(3, 0.1)[0].second.item());
  const auto factor = optim::make_optimizer({.name = "adafactor", .step_offset = 10, .decay_exponent = 0.5}, third.loss,
                                            third.graph.variables());
  EXPECT_DOUBLE_EQ(factor->feeds(14, 0.1)[2].second.item(), 0.5);
}

TEST(MakeOptimizer, AdamWIsAdamWithDecay) {
  const Result adam = train({.name = "adam", .weight_decay = 0.01}, "", "");
  const Result plain = train({.name = "adam"}, "", "");
  expect_equal(train({.name = "adamw"}, "", ""), adam);
  expect_equal(train({.name = "adamw", .weight_decay = 0.0}, "", ""), plain);
  EXPECT_GT(relative_difference(adam.weights[0], plain.weights[0]), 1e-4);
}

TEST(OptimizerErrors, NoSuchOptimizer) {
  const Model model;
  EXPECT_USER_ERROR(optim::make_optimizer({.name = "adma"}, model.loss, model.graph.variables()),
                    lines("there is no optimizer 'adma'", here(),
                          "did you mean 'adam'? the optimizers are sgd, momentum, adam, adamw and adafactor"));
  EXPECT_USER_ERROR(optim::make_optimizer({.name = "shampoo"}, model.loss, model.graph.variables()),
                    "there is no optimizer 'shampoo'", "fix:   the optimizers are");
}

TEST(OptimizerErrors, NoSuchOption) {
  const Model model;
  const Tensors variables = model.graph.variables();
  EXPECT_USER_ERROR(optim::make_optimizer({.name = "adam", .momentum = 0.9}, model.loss, variables),
                    lines("the optimizer adam has no option momentum", str("momentum at ", here()),
                          "leave it out; its options are beta1, beta2, epsilon, bias_correction, "
                          "exclude_from_weight_decay, weight_decay, clip_norm, rules"));
  EXPECT_USER_ERROR(optim::make_optimizer({.name = "sgd", .epsilon1 = 1}, model.loss, variables),
                    "the optimizer sgd has no option epsilon1", "its options are weight_decay, clip_norm, rules");
}

TEST(OptimizerErrors, BadCommonOptions) {
  const Model model;
  const Tensors variables = model.graph.variables();
  EXPECT_USER_ERROR(optim::Sgd(model.loss, variables, {.clip_norm = -1}), "clip_norm of Sgd cannot be -1",
                    "code:  optimizer.bad-clip-norm");
  EXPECT_USER_ERROR(optim::Adafactor(model.loss, variables, {.weight_decay = -1}),
                    "weight_decay of Adafactor cannot be -1");
  EXPECT_USER_ERROR(optim::Adam(model.loss, variables, {.rules = {{.pattern = "w", .rate_scale = -1}}}),
                    "rate_scale of the rule 'w' cannot be -1", "code:  optimizer.bad-rule-rate");
  EXPECT_USER_ERROR(optim::Adam(model.loss, variables, {.rules = {{.pattern = "w", .weight_decay = -2}}}),
                    "weight_decay of the rule 'w' cannot be -2", "code:  optimizer.bad-rule-decay");
  EXPECT_USER_ERROR(optim::Adam(model.loss, variables, {.rules = {{.pattern = "third"}}}),
                    "no variable has a name in which 'third' is found");
}

}  // namespace
}  // namespace weft::test::clip_test
