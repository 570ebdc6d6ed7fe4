// A session with a storage layout: what is held, read and written, and executables that share it.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "base/str.h"
#include "program/cost.h"
#include "store/models.h"
#include "support/expect_error.h"

namespace weft::session_test {
namespace {

using test::build_model;
using test::build_optimizer;

Session session_of(const std::string& mesh, const std::string& store, int level) {
  return Session(Mesh::parse(mesh), wire::threads(), device::reference(),
                 {.seed = 3, .store = store.empty() ? Store() : Store::parse(store, level)});
}

// The first values do not depend on how they are stored, and what is written is what is read.
TEST(StoreSession, HoldsTheSameFirstValuesAndTakesNewOnes) {
  const test::TestModel m = build_model("transformer");
  const CompileOptions options{.fetch = {m.loss}, .update = build_optimizer("adam", m).updates};
  Session plain = session_of("data:2 model:2", "", 0);
  plain.compile(m.g, Layout::parse("batch:data d_ff:model"), options);
  for (int level = 1; level <= 3; ++level) {
    Session session = session_of("data:2 model:2", "*:data", level);
    session.compile(m.g, Layout::parse("batch:data d_ff:model"), options);
    ASSERT_EQ(session.variables(), plain.variables());
    for (const std::string& name : session.variables()) {
      EXPECT_EQ(session.value(name).values(), plain.value(name).values()) << name;
      Array counted = session.value(name);
      for (std::int64_t i = 0; i < counted.elements(); ++i) counted.set(i, static_cast<double>(i));
      session.set_value(name, counted);
      EXPECT_EQ(session.value(name).values(), counted.values()) << name;
    }
  }
}

// Training and evaluation under one storage layout: the second sees what the first has learnt.
TEST(StoreSession, ExecutablesShareVariables) {
  for (int level = 1; level <= 3; ++level) {
    const test::TestModel m = build_model("two_layer");
    const test::TestOptimizer adam = build_optimizer("adam", m);
    Session session = session_of("data:2", "*:data", level);
    const Layout layout = Layout::parse("batch:data");
    Executable step = session.compile(m.g, layout, {.fetch = {m.loss}, .update = adam.updates});
    Executable check = session.compile(m.g, layout, {.fetch = {m.loss}});
    const double before = check.run(m.feeds).scalar(m.loss);
    for (int t = 1; t <= 5; ++t) {
      Feeds feeds = m.feeds;
      for (const auto& feed : adam.feeds(t)) feeds.push_back(feed);
      step.run(feeds);
    }
    const double after = check.run(m.feeds).scalar(m.loss);
    EXPECT_LT(after, before);
    const test::TestModel again = build_model("two_layer");
    Executable other = session.compile(again.g, layout, {.fetch = {again.loss}});
    EXPECT_EQ(other.run(again.feeds).scalar(again.loss), after);
  }
}

TEST(StoreSession, FetchesVariablesGradientsAndNewValues) {
  const Dim batch{"batch", 4}, a{"a", 8};
  Graph g;
  const Tensor x = g.input("x", {batch, a}), w = g.variable("w", {a}, init::ones());
  const Tensor loss = reduce_sum(x * w);
  const Tensor d = gradients({loss}, {w})[0], next = assign_sub(w, d * 0.5);
  const std::vector<double> numbers(32, 2.0);
  for (int level = 1; level <= 3; ++level) {
    Session session = session_of("data:2", "*:data", level);
    Executable step = session.compile(g, Layout::parse("batch:data"), {.fetch = {w, d, next}, .update = {next}});
    const Values values = step.run({{x, Array({batch, a}, numbers, DType::kF32)}});
    EXPECT_EQ(values[w].values(), std::vector<double>(8, 1.0));
    EXPECT_EQ(values[d].values(), std::vector<double>(8, 8.0));
    EXPECT_EQ(values[next].values(), std::vector<double>(8, -3.0));
    EXPECT_EQ(session.value("w").values(), std::vector<double>(8, -3.0));
    EXPECT_NE(step.report().find(str("store \"*:data\" level ", level)), std::string::npos) << step.report();
  }
}

// The model sees bf16: that is what travels, once per pass; the update reads and writes f32 shards.
TEST(StoreSession, ParametersAreGatheredInTheirActivationDtype) {
  const Dim batch{"batch", 4}, a{"a", 8}, b{"b", 8}, c{"c", 4};
  Graph g;
  const VariableOptions mixed{.activation = DType::kBF16};
  const Tensor x = cast(g.input("x", {batch, a}), DType::kBF16);
  const Tensor w = g.variable("w", {a, b}, init::fan_in(a), mixed), v = g.variable("v", {b, c}, init::fan_in(b), mixed);
  const Tensor y = einsum({relu(einsum({x, w}, {batch, b})), v}, {batch, c});
  const Tensor loss = mean(square(cast(y, DType::kF32)));
  const optim::Adam adam(loss, g.variables());
  const Program p = compile_program(g, Mesh::parse("data:2"), Layout::parse("batch:data"),
                                    {.fetch = {loss}, .update = adam.updates()}, Store::parse("*:data", 3))
                        .program;
  std::map<std::string, std::int64_t> gathered;
  for (const CollectiveCost& cost : summarize(p).collectives)
    if (cost.kind == "all_gather") gathered[str(name_of(cost.phase), " ", name_of(cost.dtype))] += cost.bytes;
  EXPECT_EQ(gathered,
            (std::map<std::string, std::int64_t>{{"forward bf16", 2 * (64 + 32) / 2}, {"backward bf16", 2 * 32 / 2}}));
  for (const ProgramVariable& variable : p.variables)
    EXPECT_EQ(p.values[variable.value].dtype, DType::kF32) << variable.name;
}

// Two layouts of one session would store a variable in two ways.
TEST(StoreSession, RefusesAnotherLayoutOfTheSameVariable) {
  const test::TestModel m = build_model("two_layer");
  Session session = session_of("data:2 model:2", "*:data", 3);
  session.compile(m.g, Layout::parse("batch:data"), {.fetch = {m.loss}});
  EXPECT_USER_ERROR(session.compile(m.g, Layout::parse("batch:data hidden:model"), {.fetch = {m.loss}}),
                    "is held as f32 [io=2 hidden=12] {io:data}, but this graph needs f32 [io=2 hidden=6] {io:data "
                    "hidden:model}");
}

// Only slots and, at level 3, what is trained.
TEST(StoreSession, LeavesOtherStateAlone) {
  const Dim a{"a", 8};
  Graph g;
  const Tensor w = g.variable("w", {a}), frozen = g.variable("frozen", {a}, init::ones(), {.trainable = false});
  const Tensor slot = g.variable("slot", {a}, init::ones(), {.trainable = false, .slot_of = "w"});
  const auto split = [&](int level) {
    const Program p =
        compile_program(g, Mesh::parse("data:2"), {}, {.fetch = {w, frozen, slot}}, Store::parse("*:data", level))
            .program;
    std::map<std::string, bool> result;
    for (const ProgramVariable& v : p.variables) result[v.name] = !p.values[v.value].sharding.splits_nothing();
    return result;
  };
  using Split = std::map<std::string, bool>;
  EXPECT_EQ(split(1), (Split{{"w", false}, {"frozen", false}, {"slot", true}}));
  EXPECT_EQ(split(2), (Split{{"w", false}, {"frozen", false}, {"slot", true}}));
  EXPECT_EQ(split(3), (Split{{"w", true}, {"frozen", false}, {"slot", true}}));
}

}  // namespace
}  // namespace weft::session_test
