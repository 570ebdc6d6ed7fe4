// batch_norm: statistics of the whole batch however it is split, and what is left of them for later.
#include <gtest/gtest.h>

#include "weft/nn.h"
#include "weft/session.h"

namespace weft::test::batch_norm_test {
namespace {

const Dim kBatch{"batch", 4}, kPlace{"place", 2}, kChannel{"channel", 3};
const Shape kShape{kBatch, kPlace, kChannel};

// Channel c holds c + 0, 1, … 7, so that its mean is c + 3.5 and its variance 5.25.
Array ramp() {
  Array x(kShape, DType::kF32);
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set(i, static_cast<double>(i / 3 + i % 3));
  return x;
}

TEST(BatchNorm, TheSeedsCase) {
  const Dim rows{"rows", 2}, columns{"columns", 3};
  Graph g;
  const Tensor x = g.input("x", {rows, columns});
  const auto trained = nn::batch_norm(x, {rows}, {.momentum = 0, .epsilon = 1e-9});
  Session session{Mesh()};
  const Feeds feeds{{x, Array({rows, columns}, std::vector<float>{0, 1, 2, 4, 7, 10})}};
  const Values got = session.compile(g, {}, {.fetch = {trained.y}, .update = trained.updates}).run(feeds);
  Graph later;
  const Tensor z = later.input("x", {rows, columns});
  const auto used = nn::batch_norm(z, {rows}, {.epsilon = 1e-9, .training = false});
  EXPECT_TRUE(used.updates.empty());
  const Values again = session.compile(later, {}, {.fetch = {used.y}}).run({{z, feeds[0].second}});
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_NEAR(got[trained.y].at(i), i < 3 ? -1 : 1, 1e-6);
    EXPECT_NEAR(again[used.y].at(i), i < 3 ? -1 : 1, 1e-6);
  }
}

class BatchNormLayout : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BatchNormLayout, MovesMeanAndVarianceOfTheWholeBatch) {
  Graph g;
  const Tensor x = g.input("x", kShape);
  const auto [y, updates] = nn::batch_norm(x, {kBatch, kPlace}, {.momentum = 0.75});
  Session session(Mesh::parse(GetParam().first));
  Executable step = session.compile(g, Layout::parse(GetParam().second), {.fetch = {y}, .update = updates});
  double mean_kept = 0, variance = 1;
  for (int t = 0; t < 2; ++t) {
    step.run({{x, ramp()}});
    mean_kept = 0.75 * mean_kept + 0.25;
    variance = 0.75 * variance + 0.25 * 5.25;
    for (std::int64_t c = 0; c < kChannel.size; ++c) {
      EXPECT_NEAR(session.value("batch_norm/moving_mean").at(c), mean_kept * (3.5 + static_cast<double>(c)), 1e-6);
      EXPECT_NEAR(session.value("batch_norm/moving_variance").at(c), variance, 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, BatchNormLayout,
                         ::testing::Values(std::pair{"", ""}, std::pair{"p:2", "batch:p"}, std::pair{"p:2", "place:p"},
                                           std::pair{"p:2 q:2", "batch:p place:q"}, std::pair{"p:3", "channel:p"}));

// In bf16 a mean of 1000 would not move by the 1 that it is to move here.
TEST(BatchNorm, StatisticsOfNarrowFloatsAreWide) {
  Graph g;
  const Tensor x = g.input("x", kShape, DType::kBF16);
  const auto [y, updates] = nn::batch_norm(x, {kBatch, kPlace}, {.momentum = 0.75});
  EXPECT_EQ(y.dtype(), DType::kBF16);
  Session session{Mesh()};
  Executable step = session.compile(g, {}, {.fetch = {y}, .update = updates});
  session.set_value("batch_norm/moving_mean", Array({kChannel}, std::vector<float>{1000, 1000, 1000}));
  Array near(kShape, DType::kBF16);
  for (std::int64_t i = 0; i < near.elements(); ++i) near.set(i, 1004);
  step.run({{x, near}});
  EXPECT_EQ(session.value("batch_norm/moving_mean").values(), (std::vector<double>{1001, 1001, 1001}));
}

TEST(BatchNorm, TheMovingOnesAreNotTrained) {
  Graph g;
  nn::batch_norm(g.input("x", kShape), {kBatch, kPlace});
  EXPECT_EQ(g.variables().size(), 2u);
  EXPECT_EQ(g.all_variables().size(), 4u);
}

}  // namespace
}  // namespace weft::test::batch_norm_test
