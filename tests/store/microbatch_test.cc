// Microbatches under storage layouts: the same numbers; one reduction at the end, or a reduce_scatter a part.
#include <gtest/gtest.h>

#include "support/compile.h"
#include "base/str.h"
#include "program/cost.h"
#include "store/models.h"

namespace weft::microbatch_test {
namespace {

const Dim kBatch{"batch", 16}, kIn{"in", 8}, kHidden{"hidden", 16};

// Two layers whose loss is worked off in parts; one part: as it is.
test::TestModel model_in_parts(std::int64_t parts) {
  test::TestModel m;
  const Tensor x = m.g.input("x", {kBatch, kIn});
  const Tensor w = m.g.variable("w", {kIn, kHidden}, init::fan_in(kIn));
  const Tensor v = m.g.variable("v", {kHidden, kIn}, init::fan_in(kHidden));
  const auto loss = [&](const Tensors& part) {
    return mean(square(einsum({tanh(einsum({part[0], w})), v}) - part[0]));
  };
  m.loss = parts == 1 ? loss({x}) : microbatch_loss({x}, kBatch, parts, loss);
  test::feed(m, x, 1);
  return m;
}

std::map<std::string, Array> trained(std::int64_t parts, const std::string& mesh, const std::string& layout,
                                     const Store& store) {
  const test::TestModel m = model_in_parts(parts);
  const test::TestOptimizer optim = test::build_optimizer("adam", m);
  Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.seed = 7, .store = store});
  Executable step = session.compile(m.g, Layout::parse(layout),
                                    {.fetch = {m.loss}, .update = optim.updates, .compute_as = DType::kF64});
  std::map<std::string, Array> result;
  for (int t = 1; t <= 3; ++t) {
    Feeds feeds = m.feeds;
    for (const auto& feed : optim.feeds(t)) feeds.push_back(feed);
    const Values values = step.run(feeds);
    result[str("loss ", t)] = values[m.loss];
  }
  for (const std::string& name : session.variables()) result[name] = session.value(name);
  return result;
}

TEST(StoreMicrobatch, EveryLevelGivesTheNumbersOfTheWholeBatch) {
  const std::map<std::string, Array> want = trained(1, "", "", {});
  for (const auto& [mesh, layout] : {std::pair("data:2", "batch:data"), std::pair("data:4", "batch:data"),
                                     std::pair("data:2 model:2", "batch:data hidden:model")})
    for (int level = 0; level <= 3; ++level) {
      SCOPED_TRACE(str(mesh, " level ", level));
      const std::map<std::string, Array> got =
          trained(4, mesh, layout, level == 0 ? Store() : Store::parse("*:data", level));
      for (const auto& [name, array] : want) EXPECT_LE(relative_difference(got.at(name), array), 1e-9) << name;
    }
}

// "reduce_scatter in the loop" -> how often in a step.
std::map<std::string, std::int64_t> collectives(int level) {
  const test::TestModel m = model_in_parts(4);
  const CompileOptions options{.fetch = {}, .update = test::build_optimizer("adam", m).updates};
  const Store store = level == 0 ? Store() : Store::parse("*:data", level);
  const Program p = compile_program(m.g, Mesh::parse("data:2"), Layout::parse("batch:data"), options, store).program;
  std::map<std::string, std::int64_t> counts;
  visit_bodies(p, [&](const Program& body, std::int64_t times) {
    for (const Instr& instr : body.body)
      if (is_collective(instr))
        counts[str(name_of(instr), times > 1 ? " in the loop" : "")] += static_cast<std::int64_t>(instr.inputs.size());
  });
  return counts;
}

TEST(StoreMicrobatch, GradientsAreReducedOnceOrScatteredInEveryPart) {
  using Counts = std::map<std::string, std::int64_t>;
  EXPECT_EQ(collectives(0), (Counts{{"all_reduce", 2}}));
  EXPECT_EQ(collectives(1), (Counts{{"reduce_scatter", 2}, {"all_gather", 2}}));
  EXPECT_EQ(collectives(2), (Counts{{"reduce_scatter in the loop", 2}, {"all_gather", 2}}));
  EXPECT_EQ(collectives(3), (Counts{{"reduce_scatter in the loop", 2},
                                    {"all_gather in the loop", 3}}));  // dX of the first layer is not needed
}

// The sums of gradients are resharded at the end of each part, while the program's values grow.
TEST(StoredMicrobatches, ProgramsOfAnySizeCompile) {
  for (int layers = 1; layers <= 20; ++layers) {
    Graph g;
    const Tensor x = g.input("x", {kBatch, kIn});
    Tensors weights;
    for (int i = 0; i < layers; ++i) {
      weights.push_back(g.variable(str("w", i), {kIn, kHidden}, init::fan_in(kIn)));
      weights.push_back(g.variable(str("v", i), {kHidden, kIn}, init::fan_in(kHidden)));
    }
    const Tensor loss = microbatch_loss({x}, kBatch, 2, [&](const Tensors& part) {
      Tensor y = part[0];
      for (std::size_t i = 0; i < weights.size(); ++i) y = tanh(einsum({y, weights[i]}));
      return mean(square(y - part[0]));
    });
    Session session(Mesh::parse("p:2"), wire::threads(), device::reference(), {.store = Store::parse("*:p", 3)});
    EXPECT_NO_THROW(
        session.compile(g, Layout::parse("batch:p"), {.fetch = {loss}, .update = optim::sgd(loss, g.variables(), 0.1)}))
        << layers << " layers";
  }
}

}  // namespace
}  // namespace weft::microbatch_test
