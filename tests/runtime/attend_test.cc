// The fast kernels of attend and attend_back against the reference: odd sizes, strided operands, masks, groups, bf16,
// several workers. Suites that begin with Gpu need a card.
#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.h"
#include "base/str.h"
#include "program/attend.h"
#include "runtime/cuda/open.h"
#include "support/run_program.h"

namespace weft::test::attend_test {
namespace {

struct Case {
  std::string name;
  std::int64_t length = 8, memory = 8, key = 16, value = 16;
  std::int64_t batch = 2, heads = 2, group = 1;
  bool causal = false;
  Shape bias = {};      // empty: none
  bool by_bias = true;  // its derivative is asked for
  bool alone = true;    // a worker does all that adds to a number of it, since there are enough others
  bool segments = false;
  DType dtype = DType::kF32;
  bool sliced = false;        // q, k and v are slices of one value, as are their derivatives
  bool inner_length = false;  // length and memory are the last dims
  bool bounded = false;       // the memory has ends
  bool sources = false;       // along the heads; forward alone
};

ValueType type(const Shape& shape, DType dtype) { return {dtype, shape, unsplit(shape)}; }

Array numbers(const Value& value, std::uint64_t salt) {
  Array x(value.shape, value.dtype);
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::uint32_t word = philox_word(salt, static_cast<std::uint64_t>(i), 0);
    x.set(i, is_integer(value.dtype) ? word % 3 : word * 0x1p-31 - 1);
  }
  return x;
}

// attend and attend_back of inputs, as a program.
class Attention {
 public:
  explicit Attention(const Case& c) : c_(c) {
    if (c.sliced) slice();
    else whole();
    masks();
    const Shape q = b_.value(q_).shape, k = b_.value(k_).shape, v = b_.value(v_).shape;
    const Shape y = q.replaced("key", {v.dim("value")}), rows = q.minus({{"key", 1}});
    std::vector<ValueId> operands{q_, k_, v_};
    operands.insert(operands.end(), masks_.begin(), masks_.end());
    const auto forward = b_.emit(Attend{rules_}, operands, {type(y, c.dtype), type(rows, DType::kF32)});
    b_.output("y", forward[0]);
    b_.output("total", forward[1]);
    if (c.sources) return;
    const ValueId dy = b_.input("dy", type(y, c.dtype));
    operands = {q_, k_, v_, forward[0], forward[1], dy};
    operands.insert(operands.end(), masks_.begin(), masks_.end());
    std::vector<ValueType> outs{type(q, c.dtype), type(k, c.dtype), type(v, c.dtype)};
    if (c.sliced) outs = {b_.type(joined_)};
    const std::size_t others = outs.size();
    if (rules_.biased && c.by_bias) outs.push_back(type(c.bias, DType::kF32));
    const auto back = b_.emit(AttendBack{rules_, c.sliced ? "qkv" : ""}, operands, std::move(outs));
    for (std::size_t i = 0; i < others; ++i) b_.output(str("derivative", i), back[i]);
    if (back.size() > others) b_.output("by_bias", back[others]);
  }

  Program finish() { return std::move(b_).finish(); }

 private:
  void whole() {
    const Dim length{"length", c_.length}, memory{"memory", c_.memory}, key{"key", c_.key}, value{"value", c_.value};
    const Dim batch{"batch", c_.batch}, heads{"heads", c_.heads}, group{"group", c_.group};
    Shape q{batch, length, heads, group, key}, k{batch, memory, heads, key}, v{memory, heads, batch, value};
    if (c_.inner_length) {
      q = {heads, key, group, batch, length};
      k = {key, batch, heads, memory};
      v = {batch, heads, value, memory};
    }
    q_ = b_.input("q", type(q, c_.dtype));
    k_ = b_.input("k", type(k, c_.dtype));
    v_ = b_.input("v", type(v, c_.dtype));
  }

  void slice() {
    joined_ = b_.input(
        "joined",
        type({{"batch", c_.batch}, {"length", c_.length}, {"qkv", 3}, {"heads", c_.heads}, {"key", c_.key}}, c_.dtype));
    const Shape part{{"batch", c_.batch}, {"length", c_.length}, {"heads", c_.heads}, {"key", c_.key}};
    const auto row = [&](std::int64_t i) { return b_.reshape(b_.slice(joined_, "qkv", i, 1), part, unsplit(part)); };
    q_ = row(0);
    k_ = b_.rename(row(1), "length", "memory");
    v_ = b_.rename(b_.rename(row(2), "length", "memory"), "key", "value");
  }

  void masks() {
    rules_ = {.length = "length",
              .memory = "memory",
              .key = "key",
              .value = "value",
              .scale = 0.3,
              .causal = c_.causal,
              .biased = !c_.bias.empty(),
              .segments = c_.segments,
              .bounded = c_.bounded,
              .sources = c_.sources ? "heads" : ""};
    if (rules_.biased) masks_.push_back(b_.input("bias", type(c_.bias, c_.dtype)));
    if (c_.segments) {
      masks_.push_back(b_.input("query_ids", type({{"length", c_.length}, {"batch", c_.batch}}, DType::kI32)));
      masks_.push_back(b_.input("memory_ids", type({{"memory", c_.memory}}, DType::kI64)));
    }
    const Dim batch{"batch", c_.batch}, heads{"heads", c_.heads}, memory{"memory", c_.memory};
    if (c_.bounded) masks_.push_back(b_.input("end", type({heads, batch}, DType::kI32)));
    if (c_.sources) masks_.push_back(b_.input("sources", type({batch, heads, memory}, DType::kI32)));
  }

  Case c_;
  Builder b_{Mesh()};
  ValueId q_, k_, v_, joined_;
  std::vector<ValueId> masks_;
  AttendRules rules_;
};

std::map<std::string, Array> run_on(const Program& program, const Engine& engine, int workers, int steps = 1) {
  NamedShards inputs;
  std::uint64_t salt = 1;
  for (const ProgramInput& input : program.inputs) inputs[input.name] = {numbers(program.values[input.value], salt++)};
  if (const auto end = inputs.find("end"); end != inputs.end())  // before the memory, in it, at its end, and behind it
    for (std::int64_t i = 0; i < end->second.front().elements(); ++i)
      end->second.front().set(i, static_cast<double>(11 * i - 1));
  const RunResult result = run_all(program, inputs, {.steps = steps}, engine, workers);
  if (result.failure) std::rethrow_exception(result.failure);
  std::map<std::string, Array> outputs;
  for (const auto& [name, shards] : result.outputs) outputs.emplace(name, shards.front());
  return outputs;
}

std::vector<Case> cases_of_bias() {
  return {
      {.name = "BiasOfHeads", .length = 40, .memory = 36, .bias = {{"heads", 2}, {"length", 40}, {"memory", 36}}},
      {.name = "BiasTurned", .length = 40, .memory = 36, .causal = true, .bias = {{"memory", 36}, {"batch", 2}}},
      {.name = "BiasAlone", .length = 40, .memory = 36, .bias = {{"length", 40}, {"memory", 36}}, .by_bias = false},
      {.name = "BiasOfManyHeads",
       .length = 70,
       .memory = 75,
       .batch = 3,
       .heads = 5,
       .causal = true,
       .bias = {{"heads", 5}, {"length", 70}, {"memory", 75}}},
      {.name = "BiasOfAllScores",
       .length = 70,
       .memory = 75,
       .batch = 2,
       .heads = 3,
       .group = 2,
       .bias = {{"batch", 2}, {"heads", 3}, {"group", 2}, {"length", 70}, {"memory", 75}},
       .segments = true},
      {.name = "BiasOfPlaces",
       .length = 70,
       .memory = 75,
       .batch = 4,
       .heads = 2,
       .group = 2,
       .causal = true,
       .bias = {{"memory", 75}, {"length", 70}},
       .alone = false,
       .segments = true},
      {.name = "BiasOfGroups",
       .length = 70,
       .memory = 75,
       .batch = 1,
       .heads = 2,
       .group = 3,
       .bias = {{"group", 3}, {"memory", 75}},
       .alone = false},
      {.name = "BiasOfTheMemory",
       .length = 70,
       .memory = 75,
       .batch = 2,
       .heads = 4,
       .bias = {{"memory", 75}},
       .alone = false,
       .inner_length = true},
      {.name = "SlicedWithBias",
       .length = 64,
       .memory = 64,
       .heads = 3,
       .causal = true,
       .bias = {{"heads", 3}, {"length", 64}, {"memory", 64}},
       .sliced = true},
  };
}

// One query, a few of them and blocks; memory that lies in rows or not.
std::vector<Case> cases_of_memory() {
  std::vector<Case> all;
  for (const std::int64_t length : {1, 4, 40})
    for (const bool inner : {false, true}) {
      Case one{.name = str("Bounded", length, inner ? "Turned" : ""),
               .length = length,
               .memory = 37,
               .key = 20,
               .value = 70,
               .heads = 3,
               .causal = length == 4,
               .segments = length > 1,
               .inner_length = inner,
               .bounded = true};
      all.push_back(one);
      one.name = str("Sources", length, inner ? "Turned" : "");
      one.sources = true;
      all.push_back(one);
      one.name += "WithoutEnd";
      one.bounded = false;
      one.bias = {{"memory", 37}};
      one.key = one.value = 32;
      all.push_back(one);
    }
  // More heads and groups than are computed together.
  for (const std::int64_t length : {1, 3})
    all.push_back({.name = str("Grouped", length),
                   .length = length,
                   .memory = 61,
                   .key = 16,
                   .heads = 5,
                   .group = 7,
                   .bounded = true});
  return all;
}

std::vector<Case> cases() {
  std::vector<Case> all{
      {.name = "Small"},
      {.name = "OneQuery", .length = 1, .memory = 37, .key = 5, .value = 3},
      {.name = "BlocksAndTails", .length = 100, .memory = 100, .key = 40, .value = 100, .causal = true},
      {.name = "FewerQueries", .length = 33, .memory = 70, .key = 16, .value = 64, .causal = true},
      {.name = "MoreQueries", .length = 70, .memory = 33, .key = 64, .value = 16, .causal = true},
      {.name = "Long", .length = 70, .memory = 1500, .key = 8, .value = 8, .batch = 1, .heads = 1},
      {.name = "LongCausal",
       .length = 1000,
       .memory = 1000,
       .key = 8,
       .value = 8,
       .batch = 1,
       .heads = 1,
       .causal = true},
      {.name = "Segments", .length = 40, .memory = 20, .segments = true},
      {.name = "EveryMask",
       .length = 40,
       .memory = 40,
       .key = 20,
       .causal = true,
       .bias = {{"length", 40}},
       .segments = true},
      {.name = "Groups", .length = 35, .memory = 35, .key = 12, .group = 3, .causal = true},
      {.name = "Turned", .length = 35, .memory = 50, .key = 12, .value = 7, .group = 2, .inner_length = true},
      {.name = "Sliced", .length = 64, .memory = 64, .causal = true, .sliced = true},
  };
  for (Case& one : cases_of_bias()) all.push_back(std::move(one));
  for (Case& one : cases_of_memory()) all.push_back(std::move(one));
  const std::size_t count = all.size();
  for (std::size_t i = 2; i < count; ++i) {
    if (all[i].memory > 200) continue;
    Case half = all[i];
    half.dtype = DType::kBF16;
    half.name += "InBf16";
    all.push_back(half);
  }
  return all;
}

double largest(const Array& a, const Array& b) {
  double most = 0;
  for (const Array* x : {&a, &b})
    for (std::int64_t i = 0; i < x->elements(); ++i) most = std::max(most, std::fabs(x->at(i)));
  return most;
}

class CpuAttend : public ::testing::TestWithParam<Case> {};

TEST_P(CpuAttend, AgreesWithTheReference) {
  const Program program = Attention(GetParam()).finish();
  const auto want = run_on(program, reference_engine(), 1);
  const double tolerance = GetParam().dtype == DType::kBF16 ? 1e-2 : 1e-5;
  for (int workers : {1, 3}) {
    const auto got = run_on(program, cpu_engine(), workers);
    for (const auto& [name, array] : want) {
      // The same number for all that a query sees changes nothing: the derivative by it is a sum that cancels.
      const bool cancels = name == "by_bias" && !GetParam().bias.has("memory");
      const double difference = cancels ? largest(got.at(name), array) : relative_difference(got.at(name), array);
      EXPECT_LE(difference, tolerance) << name << ", " << workers << " workers";
    }
  }
}

// One worker or several, the bits are the same: no sum is divided.
TEST_P(CpuAttend, GivesTheSameBitsToAnyNumberOfWorkers) {
  const Program program = Attention(GetParam()).finish();
  const auto one = run_on(program, cpu_engine(), 1), three = run_on(program, cpu_engine(), 3);
  for (const auto& [name, array] : one) {
    if (name == "by_bias" && !GetParam().alone) continue;
    EXPECT_TRUE(std::ranges::equal(span_of(array), span_of(three.at(name)))) << name;
  }
}

// The bits depend neither on the timing of workers nor on the old contents of the outputs.
TEST_P(CpuAttend, GivesTheSameBitsEachTime) {
  const Program program = Attention(GetParam()).finish();
  const auto first = run_on(program, cpu_engine(), 3);
  for (int steps : {2, 3}) {
    const auto again = run_on(program, cpu_engine(), 3, steps);
    for (const auto& [name, array] : first)
      EXPECT_TRUE(std::ranges::equal(span_of(array), span_of(again.at(name)))) << name << ", step " << steps;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuAttend, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

// What cuDNN takes.
std::vector<Case> cases_of_cudnn() {
  std::vector<Case> all;
  for (const std::int64_t depth : {64, 128, 256})
    for (const bool causal : {false, true})
      all.push_back({.name = str("Packed", depth, causal ? "Causal" : ""),
                     .length = 256,
                     .memory = 256,
                     .key = depth,
                     .value = depth,
                     .heads = 3,
                     .causal = causal,
                     .dtype = DType::kBF16,
                     .sliced = true});
  Case one{.name = "", .length = 256, .memory = 256, .key = 64, .value = 64, .causal = true, .dtype = DType::kBF16};
  const auto add = [&](const char* name, auto change) {
    all.push_back(one);
    all.back().name = name;
    change(all.back());
  };
  add("Apart", [](Case&) {});
  add("ApartInF16", [](Case& c) { c.dtype = DType::kF16; });
  add("Grouped", [](Case& c) { c.group = 3; });
  add("GroupedDeep", [](Case& c) { c.group = 2, c.key = c.value = 128; });
  add("OddLength", [](Case& c) { c.length = c.memory = 200; });
  add("FewerQueries", [](Case& c) { c.length = 40, c.memory = 130, c.causal = false; });
  add("MoreQueries", [](Case& c) { c.length = 300; });
  add("OneHead", [](Case& c) { c.heads = 1; });
  add("OneOfABatch", [](Case& c) { c.batch = 1; });
  return all;
}

class GpuAttend : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!cuda_library().has_card) GTEST_SKIP() << cuda_library().found;
  }
};
class GpuCudnnAttend : public GpuAttend {
 protected:
  void SetUp() override {
    GpuAttend::SetUp();
    if (cuda_library().found.find("no cuDNN") != std::string::npos) GTEST_SKIP() << cuda_library().found;
  }
};

// Totals are the engine's own affair where it has no masks in 16 bits.
void expect_reference(const Case& c, const Engine& engine) {
  const Program program = Attention(c).finish();
  const auto want = run_on(program, reference_engine(), 1), got = run_on(program, engine, 0);
  const bool half = c.dtype != DType::kF32;
  for (const auto& [name, array] : want) {
    if (name == "total" && half) continue;
    const bool cancels = name == "by_bias" && !c.bias.has("memory");
    const double difference = cancels ? largest(got.at(name), array) : relative_difference(got.at(name), array);
    EXPECT_LE(difference, half ? 2e-2 : 2e-5) << name;
  }
}

TEST_P(GpuAttend, AgreesWithTheReference) { expect_reference(GetParam(), *cuda_library().engine); }

TEST_P(GpuAttend, GivesTheSameBitsEachTime) {
  const Program program = Attention(GetParam()).finish();
  const auto first = run_on(program, *cuda_library().engine, 0), again = run_on(program, *cuda_library().engine, 0, 3);
  for (const auto& [name, array] : first)
    EXPECT_TRUE(std::ranges::equal(span_of(array), span_of(again.at(name)))) << name;
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuAttend, ::testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(GpuCudnnAttend, AgreesWithTheReference) {
  expect_reference(GetParam(), *cuda_library().engine);
  expect_reference(GetParam(), *cuda_library().nondeterministic);
}

TEST_P(GpuCudnnAttend, GivesTheSameBitsEachTime) {
  const Program program = Attention(GetParam()).finish();
  const auto first = run_on(program, *cuda_library().engine, 0), again = run_on(program, *cuda_library().engine, 0, 3);
  for (const auto& [name, array] : first)
    EXPECT_TRUE(std::ranges::equal(span_of(array), span_of(again.at(name)))) << name;
}

TEST_P(GpuCudnnAttend, IsServedByIt) {
  const auto served = [&](const Engine& engine) {
    const auto compiled = std::make_shared<const Compiled>(with_plan(Attention(GetParam()).finish(), engine.target()));
    std::vector<std::string> by;
    for (const RunInstr& each : engine.describe(compiled, {}).instructions)
      if (attend_rules(*each.instr)) by.push_back(each.served_by);
    return by;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(served(*cuda_library().engine), (Names{"cuDNN", "cuDNN"}));
  EXPECT_EQ(served(*cuda_library().nondeterministic), (Names{"cuDNN", "cuDNN (nondeterministic)"}));
}

INSTANTIATE_TEST_SUITE_P(Cases, GpuCudnnAttend, ::testing::ValuesIn(cases_of_cudnn()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace weft::test::attend_test
