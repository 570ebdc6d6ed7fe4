// What a storage layout makes of the program: bytes held, collectives and what enters them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/compile.h"
#include "base/str.h"
#include "program/cost.h"
#include "store/models.h"
#include "weft/explain.h"
#include "weft/detail/models.h"

namespace weft::counts_test {
namespace {

using test::build_model;
using test::build_optimizer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Machine kMachine = Machine::uniform(1e11, 1e10);

Store store_of(const std::string& text, int level) { return level == 0 ? Store() : Store::parse(text, level); }

Program program_of(const test::TestModel& m, const std::string& optimizer, const std::string& mesh,
                   const std::string& layout, const Store& store) {
  const CompileOptions options{.fetch = {m.loss}, .update = build_optimizer(optimizer, m).updates};
  return compile_program(m.g, Mesh::parse(mesh), Layout::parse(layout), options, store).program;
}

// "backward reduce_scatter data" -> bytes that enter, by the program's cost.
std::map<std::string, std::int64_t> bytes_of(const Program& program) {
  std::map<std::string, std::int64_t> bytes;
  for (const CollectiveCost& c : summarize(program).collectives)
    bytes[str(name_of(c.phase), " ", c.kind, " ", c.axes)] += c.bytes;
  return bytes;
}

// x -> w1 -> relu -> w2 -> relu -> w3, batch in data. All sizes divide by 4. The loss is one number in f32.
struct Chain {
  static constexpr std::int64_t kFirst = 8 * 16, kSecond = 16 * 24, kThird = 24 * 8, kAll = kFirst + kSecond + kThird;
  const Dim batch{"batch", 8}, a{"a", 8}, b{"b", 16}, c{"c", 24}, d{"d", 8};
  test::TestModel m;

  Chain() {
    const Tensor x = m.g.input("x", {batch, a});
    const Tensor w1 = m.g.variable("w1", {a, b}, init::fan_in(a)), w2 = m.g.variable("w2", {b, c}, init::fan_in(b)),
                 w3 = m.g.variable("w3", {c, d}, init::fan_in(c));
    const Tensor h = relu(einsum({relu(einsum({x, w1}, {batch, b})), w2}, {batch, c}));
    m.loss = mean(square(einsum({h, w3}, {batch, d})));
  }
};

class StoreBytes : public ::testing::TestWithParam<int> {};  // processors

TEST_P(StoreBytes, OfVariablesPerWeightWithAdam) {
  const int d = GetParam();
  const std::int64_t w = Chain::kAll;
  const std::int64_t want[] = {12 * w, 4 * w + 8 * w / d, 4 * w + 8 * w / d, 12 * w / d};
  for (int level = 0; level <= 3; ++level) {
    Chain chain;
    const CompileOptions options{.fetch = {chain.m.loss}, .update = build_optimizer("adam", chain.m).updates};
    const Mesh mesh = Mesh::parse(str("data:", d));
    const Store store = store_of("*:data", level);
    const Explanation e = explain(chain.m.g, mesh, Layout::parse("batch:data"), options, kMachine, store);
    EXPECT_EQ(e.variable_bytes, want[level]) << "level " << level;
    EXPECT_EQ(e.parameters, w);
    EXPECT_EQ(e.parameters_per_processor, level < 3 ? w : w / d);
    EXPECT_TRUE(e.warnings.empty() || e.warnings.back().kind != "stored whole") << e.warnings.back().text;
    std::int64_t sum = 0;
    for (const Explanation::Placed& t : e.tensors)
      if (t.use == "variable") sum += t.bytes;
    EXPECT_EQ(sum, e.variable_bytes);
  }
}

TEST_P(StoreBytes, OnTheWire) {
  const int d = GetParam();
  const std::string mesh = str("data:", d);
  const std::int64_t g = 4 * Chain::kAll, p = g;
  using Bytes = std::map<std::string, std::int64_t>;
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    SCOPED_TRACE(optimizer);
    const auto bytes = [&](int level) {
      return bytes_of(program_of(Chain().m, optimizer, mesh, "batch:data", store_of("*:data", level)));
    };
    const std::pair<std::string, std::int64_t> loss{"forward all_reduce data", 4};
    EXPECT_EQ(bytes(0), (Bytes{loss, {"backward all_reduce data", g}}));
    // A gather's shard enters it; p comes out.
    const Bytes gathered_once{loss, {"backward reduce_scatter data", g}, {"update all_gather data", p / d}};
    EXPECT_EQ(bytes(1), gathered_once);
    EXPECT_EQ(bytes(2), gathered_once);
    // The derivative by x is not asked for: nothing needs the first weight again.
    EXPECT_EQ(bytes(3), (Bytes{loss,
                               {"forward all_gather data", p / d},
                               {"backward all_gather data", (p - 4 * Chain::kFirst) / d},
                               {"backward reduce_scatter data", g}}));
  }
}

INSTANTIATE_TEST_SUITE_P(Processors, StoreBytes, ::testing::Values(2, 4, 8));

// Between data and model: what a processor computes with is split over model, and that shard over data.
TEST(StoreCounts, AWeightThatTheLayoutSplitsIsSplitFurther) {
  const std::int64_t half = 4 * Chain::kAll / 2;
  for (const auto& [layout, split] : {std::pair("batch:data b:model", "{b:model+data}")}) {
    const Program p = program_of(Chain().m, "adam", "data:2 model:2", layout, Store::parse("b:data", 3));
    for (const ProgramVariable& v : p.variables) {
      const Value& value = p.values[v.value];
      if (value.shape.has("b")) {
        EXPECT_EQ(text_of(value.sharding, value.shape, p.mesh), split) << v.name;
      }
    }
  }
  const auto bytes =
      bytes_of(program_of(Chain().m, "adam", "data:2 model:2", "batch:data b,d:model", Store::parse("*:data", 1)));
  EXPECT_EQ(bytes.at("backward reduce_scatter data"), half);
  EXPECT_EQ(bytes.at("update all_gather data"), half / 2);
  EXPECT_FALSE(bytes.contains("backward all_reduce data"));
}

// At level 2 and 3 no collective and no op of the update sees a whole gradient or moment of a weight.
TEST(StoreCounts, GradientsLiveOnlyAsShards) {
  for (const char* name : {"two_layer", "digits", "transformer"})
    for (const char* optimizer : {"sgd", "momentum", "adam", "adafactor"})
      for (int level : {2, 3}) {
        SCOPED_TRACE(str(name, " ", optimizer, " level ", level));
        const test::TestModel m = build_model(name);
        const Program p = program_of(m, optimizer, "data:2", "batch:data", Store::parse("*:data", level));
        std::vector<Shape> weights;
        for (const ProgramVariable& v : p.variables)
          if (v.trainable) weights.push_back(global_shape(p.values[v.value].shape, p.values[v.value].sharding, p.mesh));
        for (const Instr& instr : p.body)
          for (ValueId id : instr.outputs) {
            const Shape& shape = p.values[id].shape;
            const bool whole = shape.rank() > 1 && std::find(weights.begin(), weights.end(), shape) != weights.end();
            if (instr.is<AllReduce>()) {
              EXPECT_FALSE(whole) << "all_reduce gives " << shape;
            }
            if (instr.origin.phase == Phase::kUpdate && !is_collective(instr)) {
              EXPECT_FALSE(whole) << name_of(instr) << " of the update gives " << shape;
            }
          }
      }
}

// The copy of the forward pass is freed: no gathered weight is used in both passes, and the peak falls.
TEST(StoreCounts, GatheredParametersAreFreed) {
  const Program p = program_of(build_model("transformer"), "adam", "data:2", "batch:data", Store::parse("*:data", 3));
  std::map<ValueId, Phase> gathered;
  for (const Instr& instr : p.body) {
    for (ValueId id : instr.inputs)
      if (gathered.contains(id)) {
        EXPECT_EQ(gathered[id], instr.origin.phase) << p.values[id].name;
      }
    if (instr.is<AllGather>()) gathered[instr.outputs[0]] = instr.origin.phase;
  }
  EXPECT_EQ(gathered.size(), 9u + 6u);  // of the backward pass all but positions and biases

  const models::Model big = models::build("transformer", {{"batch", 4}, {"length", 8}});
  std::vector<std::int64_t> live;
  for (int level = 0; level <= 3; ++level)
    live.push_back(explain(big.graph, Mesh::parse("data:4"), Layout::parse("batch:data"), big.options, kMachine,
                           store_of("*:data", level))
                       .live_bytes);
  EXPECT_LT(live[1], live[0]);
  EXPECT_EQ(live[2], live[1]);
  EXPECT_LT(live[3], live[2]);
}

TEST(StoreCounts, WhatDoesNotDivideIsStoredWholeAndListed) {
  const test::TestModel m = build_model("mlp");
  const CompileOptions options{.fetch = {m.loss}, .update = build_optimizer("adam", m).updates};
  const auto of = [&](int level) {
    return explain(m.g, Mesh::parse("data:4"), Layout::parse("batch:data"), options, kMachine,
                   Store::parse("*:data", level));
  };
  const Explanation one = of(1), three = of(3);
  ASSERT_FALSE(one.warnings.empty());
  EXPECT_EQ(one.warnings.back().kind, "stored whole");
  EXPECT_THAT(one.warnings.back().cause, ElementsAre("logits/bias.m", "logits/bias.v"));
  EXPECT_THAT(one.warnings.back().axes, ElementsAre("data"));
  EXPECT_EQ(one.warnings.back().text,
            "the storage layout splits no dim of logits/bias.m, logits/bias.v: all 4 processors along data store the "
            "same 40 B");
  EXPECT_THAT(three.warnings.back().cause, ElementsAre("logits/bias", "logits/bias.m", "logits/bias.v"));
  EXPECT_THAT(three.text(), HasSubstr("layout \"batch:data\", store \"*:data\" level 3: 4 processors"));
  EXPECT_THAT(three.text(), HasSubstr("\nVariables as each processor stores them\n"));
  EXPECT_THAT(three.text(), HasSubstr("first/kernel     f32    [pixel=6 hidden=16]  {hidden:data}    96 B  384 B\n"));
  EXPECT_THAT(three.json(), HasSubstr("\"store\": {\n    \"layout\": \"*:data\",\n    \"level\": 3\n  }"));
}

// A gradient that the model itself looks at is reduced once; the update takes its shards of that.
TEST(StoreCounts, AGradientThatIsUsedElsewhereIsReducedOnce) {
  Chain chain;
  const Tensor w = chain.m.g.variables()[0], d = gradients({chain.m.loss}, {w})[0];
  const Tensor size = reduce_max(abs(d));  // no op of the update
  const Updates updates{assign_sub(w, d * 0.1)};
  for (int level : {1, 2, 3}) {
    const auto bytes = bytes_of(compile_program(chain.m.g, Mesh::parse("data:2"), Layout::parse("batch:data"),
                                                {.fetch = {size}, .update = updates}, Store::parse("*:data", level))
                                    .program);
    EXPECT_EQ(bytes.at("backward all_reduce data"), 4 * Chain::kFirst);
    EXPECT_FALSE(bytes.contains("backward reduce_scatter data"));
  }
}

// A want flows through pointwise ops to the gradient, and a norm over all gradients is right on shards.
TEST(StoreCounts, NormsOfAllGradientsArePartialSums) {
  Chain chain;
  Graph& g = chain.m.g;
  const Tensors variables = g.variables(), gradient = gradients({chain.m.loss}, variables);
  const UpdatePhase phase(chain.m.loss);
  Tensor sum;
  for (const Tensor& d : gradient) sum = sum ? sum + reduce_sum(square(d)) : reduce_sum(square(d));
  const Tensor factor = minimum(rsqrt(sum) * 0.01, 1.0);
  Updates updates;
  for (std::size_t i = 0; i < variables.size(); ++i) updates.push_back(assign_sub(variables[i], gradient[i] * factor));
  feed(chain.m, Tensor(g.data(), g.inputs()[0].id()), 3);
  const auto weight = [&](const std::string& mesh, const Store& store) {
    Session session(Mesh::parse(mesh), wire::threads(), device::reference(), {.store = store});
    Executable step = session.compile(g, Layout::parse("batch:data?"), {.update = updates, .compute_as = DType::kF64});
    for (int i = 0; i < 2; ++i) step.run(chain.m.feeds);
    return session.value("w2");
  };
  const Array want = weight("", {});
  for (int level = 1; level <= 3; ++level)
    EXPECT_LE(relative_difference(weight("data:4", Store::parse("*:data", level)), want), 1e-9) << level;
  const auto bytes = bytes_of(compile_program(g, Mesh::parse("data:4"), Layout::parse("batch:data"),
                                              {.update = updates}, Store::parse("*:data", 2))
                                  .program);
  EXPECT_EQ(bytes, (std::map<std::string, std::int64_t>{{"backward reduce_scatter data", 4 * Chain::kAll},
                                                        {"update all_reduce data", 4},
                                                        {"update all_gather data", Chain::kAll}}));
}

}  // namespace
}  // namespace weft::counts_test
