// The judge itself: on every sample of every op, in f64 on the reference engine and as it is on the cpu engine; on loops
// whose carried values change places, by hand; and what depends on what.
#include "judge/judge.h"

#include <gtest/gtest.h>

#include "base/str.h"
#include "judge/compare.h"
#include "support/plain_functions.h"
#include "support/sampling.h"

namespace weft::judge::judge_test {
namespace {

std::vector<TensorId> ids_of(const Tensors& tensors) {
  std::vector<TensorId> ids;
  for (const Tensor& x : tensors) ids.push_back(x.id());
  return ids;
}

std::map<std::string, Value> inputs_of(const Feeds& feeds, const Arithmetic& arithmetic) {
  std::map<std::string, Value> inputs;
  for (const auto& [tensor, array] : feeds) inputs[tensor.name()] = value_of(array, tensor.dtype(), arithmetic);
  return inputs;
}

std::vector<ValuePtr> judged(const Graph& graph, const Feeds& feeds, const Tensors& fetch, const Arithmetic& how = {}) {
  return Judge(graph, {how, 0}).run(inputs_of(feeds, how), ids_of(fetch));
}

struct Case {
  const OpDef* op;
  std::size_t sample;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const OpDef* op : op_catalog())
    for (std::size_t i = 0; i < op->samples.size(); ++i) cases.push_back({op, i});
  for (const OpDef& function : test::plain_functions()) cases.push_back({&function, 0});
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return str(info.param.op->name, "_", info.param.sample);
}

class JudgeOfSamples : public ::testing::TestWithParam<Case> {
 protected:
  void check(const Arithmetic& how, const device::Choice& device) const {
    const auto& [op, sample] = GetParam();
    const test::BuiltSample built = test::build_sample(*op, op->samples[sample]);
    const Tensors fetch = test::fetched(built);
    Session session(Mesh(), wire::threads(), device, {.print = [](const std::string&) {}});
    Executable step =
        session.compile(built.graph, Layout(),
                        {.fetch = fetch, .compute_as = how.wide ? std::optional<DType>(DType::kF64) : std::nullopt});
    const Values got = step.run(built.feeds);
    const std::vector<ValuePtr> want = judged(built.graph, built.feeds, fetch, how);
    for (std::size_t i = 0; i < fetch.size(); ++i) {
      const Comparison comparison = compare(got[fetch[i]], *want[i], how);
      EXPECT_FALSE(comparison.difference)
          << "result " << i << " '" << fetch[i].name() << "' " << *comparison.difference;
      EXPECT_EQ(comparison.unknown, 0) << "result " << i;
      EXPECT_EQ(comparison.loose, 0) << "result " << i;
    }
  }
};

TEST_P(JudgeOfSamples, AgreesWithTheReferenceInDouble) { check({true}, device::reference()); }
TEST_P(JudgeOfSamples, AgreesWithTheCpuEngine) { check({false}, device::cpu()); }

INSTANTIATE_TEST_SUITE_P(Ops, JudgeOfSamples, ::testing::ValuesIn(all_cases()), name_of);

double scalar(const ValuePtr& x) { return x->is_real() ? x->f.at(0) : static_cast<double>(x->i.at(0)); }

TEST(Judge, HandsOnAllCarriedValuesAtOnce) {
  Graph g;
  const Tensor x = constant(g, 1), y = constant(g, 2);
  const LoopResult swapped = loop(g, 1, {x, y}, [](const Tensor&, const Tensors& c) {
    return LoopStep{{c[1], c[0]}, {}, {}, {}};
  });
  const LoopResult chained = loop(g, 2, {x, y}, [](const Tensor&, const Tensors& c) {
    return LoopStep{{c[0] * 10.0, c[0]}, {c[1]}, {}, {}};
  });
  Tensors fetch = swapped.carried;
  fetch.insert(fetch.end(), {chained.carried[0], chained.carried[1], chained.sums[0]});
  const std::vector<ValuePtr> got = judged(g, {}, fetch);
  std::vector<double> numbers;
  for (const ValuePtr& value : got) numbers.push_back(scalar(value));
  EXPECT_EQ(numbers, (std::vector<double>{2, 1, 100, 10, 3}));
}

TEST(Judge, WrapsWholeNumbersInTheirDType) {
  Graph g;
  const Tensor bytes = constant(g, 200, {{"a", 3}}, DType::kU8), words = constant(g, 4294967295.0, {}, DType::kU32);
  const Tensor ints = constant(g, 2147483647, {}, DType::kI32);
  const std::vector<ValuePtr> got =
      judged(g, {}, {reduce_sum(bytes), words + words, ints + 1.0, reduce_product(bytes), words * words});
  EXPECT_EQ(scalar(got[0]), 88);
  EXPECT_EQ(scalar(got[1]), 4294967294.0);
  EXPECT_EQ(scalar(got[2]), -2147483648.0);
  EXPECT_EQ(scalar(got[3]), 200 * 200 * 200 % 256);
  EXPECT_EQ(scalar(got[4]), 1);
}

TEST(Judge, KnowsWhatARoundingMayChange) {
  Graph g;
  const Dim a{"a", 8};
  const Tensor x = g.input("x", {a});
  const Feeds feeds = {{x, Array({a}, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8})}};
  const Tensor third = x / 3.0, sum = reduce_sum(third);
  const std::vector<ValuePtr> got =
      judged(g, feeds, {third, sum, greater(sum, 12.0), greater(reduce_sum(x), 36.0), greater(third, x)}, {false});
  EXPECT_EQ(got[0]->error[0], 0) << "one correctly rounded operation";
  EXPECT_GT(got[1]->error[0], 0);
  EXPECT_LT(got[1]->error[0], 1e-5);
  EXPECT_TRUE(scalar(got[1]) != 12 ? got[2]->error[0] == kUnknown : got[2]->error[0] == 0) << "12 or nearly";
  EXPECT_EQ(got[3]->error[0], 0) << "whole numbers add up exactly";
  EXPECT_EQ(got[4]->error[0], 0) << "far apart";
}

// XLA's CPU compiler computes with zeros in place of subnormals: every use of one may give what zero gives.
TEST(Judge, KnowsWhatFlushedSubnormalsMayChange) {
  Graph g;
  const Dim a{"a", 3};
  const Tensor x = g.input("x", {a});
  const Feeds feeds = {{x, Array({a}, std::vector<float>{1e-40F, 1e-30F, 0})}};
  const Tensors fetch = {x, x * 1e30, greater(x, 0.0), log(x), 1.0 / x, x * 1e-10};
  const auto errors = [&](std::size_t result, bool flushes) {
    return judged(g, feeds, fetch, {false, flushes})[result]->error;
  };
  const double subnormal = static_cast<double>(1e-40F);
  EXPECT_EQ(errors(0, false), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(errors(0, true), (std::vector<double>{subnormal, 0, 0}));
  EXPECT_GE(errors(1, true)[0], subnormal * 1e30);
  EXPECT_EQ(errors(1, true)[1], 0);
  EXPECT_EQ(errors(2, false), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(errors(2, true), (std::vector<double>{kUnknown, 0, 0}));
  EXPECT_EQ(errors(3, true)[0], kUnknown);
  EXPECT_EQ(errors(4, true)[0], kUnknown);
  EXPECT_LT(errors(4, true)[1], 1e25);
  EXPECT_GT(errors(5, true)[1], 9e-41) << "a result may be flushed too";
  EXPECT_EQ(errors(5, false)[1], 0);
}

// bf16 is computed in f32 and rounded once: a long sum errs by a few of its roundings, not by one for each term.
TEST(Judge, AddsUpNarrowNumbersInF32) {
  Graph g;
  const Dim a{"a", 1024};
  const Tensor x = g.input("x", {a}, DType::kBF16);
  Array numbers({a}, DType::kBF16);
  for (std::int64_t i = 0; i < a.size; ++i) numbers.set(i, 0.3);
  const Feeds feeds = {{x, numbers}};
  const Tensor third = x / 3.0;
  const std::vector<ValuePtr> got = judged(g, feeds, {third, reduce_sum(x), reduce_sum(cast(x, DType::kF32))}, {false});
  EXPECT_EQ(got[0]->error[0], 0) << "one correctly rounded operation";
  const double sum = 1024 * numbers.at(0), unit = 0x1p-8;
  EXPECT_NEAR(got[1]->f[0], sum, 1e-9);
  EXPECT_GE(got[1]->error[0], unit * sum);
  EXPECT_LE(got[1]->error[0], 5 * unit * sum);
  EXPECT_LE(got[2]->error[0], 1e-4 * sum);
  const Comparison right = compare(Array::scalar(sum * (1 + unit), DType::kBF16), *got[1], {false});
  EXPECT_FALSE(right.difference) << *right.difference;
  EXPECT_TRUE(compare(Array::scalar(sum * 0.9, DType::kBF16), *got[1], {false}).difference);
}

TEST(Judge, FollowsWhatHasADerivative) {
  Graph g;
  const Dim a{"a", 4};
  const Tensor x = g.input("x", {a}), w = g.input("w", {a}), z = g.input("z", {a});
  const auto on = [&](const Tensor& y, const Tensor& by, bool by_hand = true) {
    return depends(g, y.id(), by.id(), by_hand);
  };
  EXPECT_TRUE(on(sin(x) * w, x));
  EXPECT_FALSE(on(sin(x) * w, z));
  EXPECT_FALSE(on(stop_gradient(x) + floor(x) + cast(greater(x, w), DType::kF32), x));
  const Tensors r = recompute(g, [&] { return Tensors{sin(x), w}; });
  EXPECT_TRUE(on(r[1], w));
  EXPECT_FALSE(on(r[1], x));
  const auto body = [&](const Tensor&, const Tensors& c) { return LoopStep{{c[1], c[1] * w}, {}, {}, {}}; };
  EXPECT_FALSE(on(loop(g, 1, {x, z}, body).carried[0], w)) << "w comes out of the first place after two trips";
  EXPECT_TRUE(on(loop(g, 2, {x, z}, body).carried[0], w));
  EXPECT_TRUE(on(loop(g, 2, {x, z}, body).carried[0], z));
  const Tensor hand = custom_gradient(
      {x}, [](const Tensors& t) { return Tensors{square(t[0])}; },
      [](const Tensors&, const Tensors&, const Tensors&) { return Tensors{Tensor()}; })[0];
  EXPECT_FALSE(on(hand, x));
  EXPECT_TRUE(on(hand, x, false));
}

// An op that is new to the judge is a failure with its name.
TEST(Judge, NamesAnOpThatItDoesNotKnow) {
  OpDef unheard = *op_catalog()[0];
  unheard.name = "unheard_of";
  unheard.shape = [](const OpCall& call) { return std::vector<TensorType>{call.inputs[0]}; };
  Graph g;
  const Tensor x = constant(g, 1);
  const Tensor y = apply(unheard, {x}, Site::current());
  try {
    judged(g, {}, {y});
    FAIL() << "it was taken";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("'unheard_of'"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace weft::judge::judge_test
