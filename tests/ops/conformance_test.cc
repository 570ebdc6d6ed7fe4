// Every primitive, from the samples in its declaration, and some plain functions: values and derivatives on the layouts of
// several meshes equal those of one processor, derivatives agree with finite differences, and layouts that cannot work are
// refused. Of layouts that differ only in which of several axes of one size they name, one is run; the soak suite runs all.
// On the wire that WEFT_TEST_WIRE names (support/processes.h). Ranks, which compile the same programs, run each layout
// either in f64 or in f32 and try one refusal per mesh: a wire sees bytes. With WEFT_TEST_LAYOUTS=traffic, for devices
// whose compiler takes long, so does everything, and of layouts whose programs have the same kinds of collectives one is run.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/str.h"
#include "judge/judge.h"
#include "support/processes.h"
#include "support/plain_functions.h"
#include "support/sampling.h"
#include "weft/explain.h"

namespace weft::conformance_test {
namespace {

using test::BuiltSample;

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

std::vector<Array> run(const BuiltSample& built, const Mesh& mesh, const std::string& layout, std::optional<DType> as,
                       const device::Choice& device = test::device_under_test()) {
  return test::in_every_process(
      mesh, {.print = [](const std::string&) {}},
      [&](Session& session) {
        Executable step =
            session.compile(built.graph, Layout::parse(layout), {.fetch = test::fetched(built), .compute_as = as});
        const Values values = step.run(built.feeds);
        std::vector<Array> arrays;
        for (const Tensor& x : test::fetched(built)) arrays.push_back(values[x]);
        return arrays;
      },
      device);
}

bool one_layout_per_traffic() {
  const char* asked = std::getenv("WEFT_TEST_LAYOUTS");
  return asked && std::string(asked) == "traffic";
}

// The kinds of collectives that a layout needs, and how many axes each goes along.
std::set<std::string> traffic_of(const BuiltSample& built, const Mesh& mesh, const std::string& layout) {
  const Explanation e =
      explain(built.graph, mesh, Layout::parse(layout), {.fetch = test::fetched(built)}, Machine::uniform(1e9, 1e9));
  std::set<std::string> kinds;
  for (const Explanation::Collective& c : e.collectives) kinds.insert(str(c.kind, " ", c.axes.size()));
  return kinds;
}

class OpConformance : public ::testing::TestWithParam<Case> {
 protected:
  BuiltSample build() const {
    const auto& [op, sample] = GetParam();
    return test::build_sample(*op, op->samples[sample]);
  }

  // Of the sample on one processor, in f64 on the reference engine: once for all tests of the sample.
  const std::vector<Array>& wanted(const BuiltSample& built) const {
    static std::map<std::pair<const OpDef*, std::size_t>, std::vector<Array>> all;
    std::vector<Array>& want = all[{GetParam().op, GetParam().sample}];
    if (want.empty()) want = run(built, Mesh(), "", DType::kF64, device::reference());
    return want;
  }

  void check_mesh(const std::string& text, bool every_layout = false) const {
    const Mesh mesh = Mesh::parse(text);
    if (!test::can_have(mesh)) GTEST_SKIP() << "needs " << mesh.size() << " ranks";
    const BuiltSample built = build();
    const std::vector<std::string> dims = test::dims_of(*built.graph.data());
    const bool by_traffic = one_layout_per_traffic(), thinned = by_traffic || test::ranks() > 0;
    std::set<std::set<std::string>> traffic;
    int refused = 0, taken = 0;
    for (const std::string& layout :
         every_layout ? test::every_layout(dims, mesh)
                      : test::unlike_layouts(dims, mesh, str(GetParam().op->name, GetParam().sample))) {
      SCOPED_TRACE(str("mesh ", text, ", layout \"", layout, "\""));
      if (!test::is_legal(*built.graph.data(), mesh, layout)) {
        if (refused++ > 0 && thinned) continue;
        EXPECT_THROW(run(built, mesh, layout, DType::kF64), UserError);
        continue;
      }
      if (by_traffic && !traffic.insert(traffic_of(built, mesh, layout)).second) continue;
      const int turn = taken++ % 2;
      if (turn == 0 || !thinned) check_layout(built, mesh, layout, DType::kF64);
      if (turn == 1 || !thinned) check_layout(built, mesh, layout, {});
    }
  }

 private:
  void check_layout(const BuiltSample& built, const Mesh& mesh, const std::string& layout,
                    std::optional<DType> as) const {
    const std::vector<Array>& want = wanted(built);
    const std::vector<Array> got = run(built, mesh, layout, as);
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_LE(relative_difference(got[i], want[i]), as ? 1e-9 : 2e-5) << "result " << i << (as ? "" : " in f32");
  }
};

TEST_P(OpConformance, FloatAgreesWithDouble) {
  const BuiltSample built = build();
  const std::vector<Array>& want = wanted(built);
  const std::vector<Array> got = run(built, Mesh(), "", {});
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].dtype(), test::fetched(built)[i].dtype());
    EXPECT_LE(relative_difference(got[i], want[i]), 2e-5) << "result " << i;
  }
}

// Central differences along one random direction per input, in f64.
TEST_P(OpConformance, GradientAgreesWithDifferences) {
  const BuiltSample built = build();
  for (const Tensor& x : built.floats)
    EXPECT_TRUE(
        (std::find(built.differentiated.begin(), built.differentiated.end(), x) != built.differentiated.end()) ||
        !judge::depends(built.graph, built.weighted_sum.id(), x.id(), true))
        << "gradients() gives no derivative by '" << x.name() << "', on which the results depend";
  if (built.derivatives.empty()) return;
  Session session = test::open_session(Mesh(), {.print = [](const std::string&) {}});
  Tensors fetch = built.derivatives;
  fetch.push_back(built.weighted_sum);
  Executable step = session.compile(built.graph, Layout(), {.fetch = fetch, .compute_as = DType::kF64});
  const Values at = step.run(built.feeds);
  for (std::size_t i = 0; i < built.derivatives.size(); ++i) {
    const Tensor& x = built.differentiated[i];
    const Array direction = test::filled(x.shape(), uniform(-1, 1), DType::kF32, 1000 + i);
    const Array& gradient = at[built.derivatives[i]];
    double predicted = 0;
    for (std::int64_t k = 0; k < gradient.elements(); ++k) predicted += gradient.at(k) * direction.at(k);
    constexpr double kStep = 1e-5;
    double sums[2];
    for (int side = 0; side < 2; ++side) {
      Feeds feeds = built.feeds;
      for (auto& [input, array] : feeds)
        if (input == x)
          for (std::int64_t k = 0; k < array.elements(); ++k)
            array.set(k, array.at(k) + (side == 0 ? kStep : -kStep) * direction.at(k));
      sums[side] = step.run(feeds).scalar(built.weighted_sum);
    }
    EXPECT_NEAR(predicted, (sums[0] - sums[1]) / (2 * kStep), 1e-6 * std::max(1.0, std::fabs(predicted)))
        << "input " << i;
  }
}

TEST_P(OpConformance, TwoProcessors) { check_mesh("p:2"); }
TEST_P(OpConformance, FourProcessors) { check_mesh("p:4"); }
TEST_P(OpConformance, TwoByTwo) { check_mesh("p:2 q:2"); }
TEST_P(OpConformance, TwoByThree) { check_mesh("p:2 q:3"); }

INSTANTIATE_TEST_SUITE_P(Ops, OpConformance, ::testing::ValuesIn(all_cases()), name_of);

class FullOpConformance : public OpConformance {};
TEST_P(FullOpConformance, TwoByTwoByTwo) { check_mesh("p:2 q:2 r:2"); }
INSTANTIATE_TEST_SUITE_P(FullOps, FullOpConformance, ::testing::ValuesIn(all_cases()), name_of);

class SoakOpConformance : public OpConformance {};
TEST_P(SoakOpConformance, EveryLayoutOfTwoByTwo) { check_mesh("p:2 q:2", true); }
TEST_P(SoakOpConformance, EveryLayoutOfTwoByTwoByTwo) { check_mesh("p:2 q:2 r:2", true); }
INSTANTIATE_TEST_SUITE_P(SoakOps, SoakOpConformance, ::testing::ValuesIn(all_cases()), name_of);

// What stands for all layouts: every one is a representative after some exchange of axes of one size, and no two stand for
// the same one.
TEST(UnlikeLayouts, StandForAll) {
  const std::vector<std::string> dims = {"a", "b"};
  const auto count = [&](const char* mesh) {
    return std::pair(test::unlike_layouts(dims, Mesh::parse(mesh), "x").size(),
                     test::every_layout(dims, Mesh::parse(mesh)).size());
  };
  // Two axes on none, a or b: 9, and of both on one dim two orders: 11, and both dims on the first axis.
  EXPECT_EQ(count("p:2 q:2"), std::pair(std::size_t{7}, std::size_t{12}));
  EXPECT_EQ(count("p:2 q:3"), std::pair(std::size_t{12}, std::size_t{12}));
  EXPECT_EQ(count("p:4"), std::pair(std::size_t{4}, std::size_t{4}));
  std::set<std::string> used;
  for (int i = 0; i < 60; ++i)
    for (const std::string& layout : test::unlike_layouts(dims, Mesh::parse("p:2 q:2 r:2"), str("sample ", i)))
      used.insert(layout);
  for (const char* layout : {"a:p", "a:q", "a:r", "a:p b:q", "a:r b:q"}) EXPECT_TRUE(used.contains(layout)) << layout;
}

// A declaration without one of its parts is not a declaration.
TEST(OpCatalog, EveryPrimitiveIsWhole) {
  for (const OpDef* op : op_catalog()) {
    SCOPED_TRACE(op->name);
    EXPECT_FALSE(op->doc.empty());
    EXPECT_TRUE(op->shape);
    EXPECT_TRUE(op->sharding);
    EXPECT_TRUE(op->gradient || !op->no_gradient.empty()) << "a gradient or the reason for none";
    EXPECT_TRUE(op->lower);
    EXPECT_TRUE(op->flops);
    EXPECT_FALSE(op->samples.empty());
  }
}

}  // namespace
}  // namespace weft::conformance_test
