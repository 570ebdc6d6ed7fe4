// Schedules against their formulas, and what a user reads of a text that is none.
#include "weft/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "errors/lines.h"

namespace weft::test::schedule_test {
namespace {

using optim::Schedule;

double at(const std::string& text, std::int64_t step, std::int64_t total = 0) {
  return Schedule::parse(text, total).at(step);
}

TEST(Schedule, WithoutFactorsIsOne) {
  EXPECT_EQ(Schedule().at(1), 1);
  EXPECT_EQ(Schedule().text(), "constant 1");
}

TEST(Schedule, FactorsAreTheirFormulas) {
  for (std::int64_t t : {1, 3, 99, 100, 101, 900, 950, 999, 1000, 2000}) {
    const double x = static_cast<double>(t);
    EXPECT_DOUBLE_EQ(at("constant 0.25", t), 0.25);
    EXPECT_DOUBLE_EQ(at("linear_warmup 100", t), std::min(1.0, x / 100));
    EXPECT_DOUBLE_EQ(at("linear_decay 100 1000", t), std::max(0.0, std::min(1.0, (1000 - x) / 100)));
    EXPECT_DOUBLE_EQ(at("truncated_rsqrt 100", t), 1 / std::sqrt(std::max(x, 100.0)));
    EXPECT_DOUBLE_EQ(at("exponential 0.5 200", t), std::pow(0.5, x / 200));
    EXPECT_DOUBLE_EQ(at("noam 100 0.1 1000", t), at("truncated_rsqrt 100 * linear_decay 100 1000", t));
  }
}

TEST(Schedule, CosineFallsFromOneToItsFloor) {
  EXPECT_DOUBLE_EQ(at("cosine 1000", 1), (1 + std::cos(std::numbers::pi / 1000)) / 2);
  EXPECT_NEAR(at("cosine 1000", 500), 0.5, 1e-12);
  EXPECT_NEAR(at("cosine 1000 0.1", 1000), 0.1, 1e-12);
  EXPECT_NEAR(at("cosine 1000 0.1", 5000), 0.1, 1e-12);
  EXPECT_DOUBLE_EQ(at("cosine 1000 0.1 200", 200), 1);
  EXPECT_NEAR(at("cosine 1000 0.1 200", 600), 0.55, 1e-12);
}

TEST(Schedule, SlantedTriangleRisesThenFalls) {
  EXPECT_DOUBLE_EQ(at("slanted_triangular", 50, 1000), (1 + 0.5 * 31) / 32);
  EXPECT_DOUBLE_EQ(at("slanted_triangular", 100, 1000), 1);
  EXPECT_NEAR(at("slanted_triangular", 550, 1000), (1 + 0.5 * 31) / 32, 1e-12);
  EXPECT_NEAR(at("slanted_triangular 0.2 10 1000", 1000), 0.1, 1e-12);
  EXPECT_NEAR(at("slanted_triangular 0.2 10 1000", 4000), 0.1, 1e-12);
}

TEST(Schedule, FactorsAreMultiplied) {
  const std::string text = "constant 0.001*linear_warmup 100 *\n cosine 1000 0.1";
  EXPECT_DOUBLE_EQ(at(text, 10), 0.001 * 0.1 * at("cosine 1000 0.1", 10));
  EXPECT_EQ(Schedule::parse(text).text(), "constant 0.001 * linear_warmup 100 * cosine 1000 0.1");
  EXPECT_EQ(Schedule::parse(Schedule::parse(text).text()).at(77), Schedule::parse(text).at(77));
}

TEST(Schedule, TheTotalMayComeFromTheTraining) {
  EXPECT_EQ(at("linear_decay 0.1", 950, 1000), 0.5);
  EXPECT_EQ(at("linear_decay 0.1 2000", 950, 1000), 1);  // unless it is written
  EXPECT_EQ(at("linear_warmup 0.01", 5, 1000), 0.5);
  EXPECT_EQ(at("noam 10000", 950, 1000), 0.01 * 0.5);
  EXPECT_EQ(at("cosine", 250, 500), at("cosine 500", 250));
}

TEST(Schedule, AnOffsetMovesAllFactors) {
  EXPECT_DOUBLE_EQ(at("offset 1000 * constant 2 * linear_warmup 10", 1004), 0.8);
  EXPECT_DOUBLE_EQ(at("constant 2 * linear_warmup 10 * offset 1000", 1004), 0.8);
  EXPECT_DOUBLE_EQ(at("linear_warmup 10 * offset 1000", 900), 0);
  EXPECT_DOUBLE_EQ(at("offset 1000 * linear_decay 0.5", 1075, 1100), 0.5);  // the half of 100 steps
}

TEST(ScheduleErrors, NoFactor) {
  EXPECT_USER_ERROR(Schedule::parse("constant 1 * cosin 100"), "'cosin' is not a factor of a schedule",
                    "where: schedule \"constant 1 * cosin 100\", column 14",
                    "did you mean 'cosine'? The factors are: constant x, linear_warmup n, linear_decay n [T]");
  EXPECT_USER_ERROR(Schedule::parse(""), "'' is not a factor of a schedule", "column 1",
                    "write factors with '*' between them: constant x, ");
  EXPECT_USER_ERROR(Schedule::parse("constant 1 *"), "'' is not a factor", "column 13");
  EXPECT_USER_ERROR(Schedule::parse("* constant 1"), "'*' is not a factor", "column 1");
}

TEST(ScheduleErrors, NoNumber) {
  EXPECT_USER_ERROR(Schedule::parse("linear_warmup ten"),
                    lines("'ten' cannot be here in the factor linear_warmup",
                          "schedule \"linear_warmup ten\", column 15", "write linear_warmup n, n from 1e-09"));
  EXPECT_USER_ERROR(Schedule::parse("linear_warmup 0"), "'0' cannot be here in the factor linear_warmup");
  EXPECT_USER_ERROR(Schedule::parse("constant nan"), "'nan' cannot be here in the factor constant");
  EXPECT_USER_ERROR(Schedule::parse("constant 1 2"), "'2' cannot be here in the factor constant", "write constant x");
  EXPECT_USER_ERROR(Schedule::parse("cosine 100 2"), "'2' cannot be here in the factor cosine",
                    "write cosine [T] [floor] [begin], T from 1, floor from 0 to 1, begin from 0");
  EXPECT_USER_ERROR(Schedule::parse("constant linear_warmup 5"),
                    "'linear_warmup' cannot be here in the factor constant");
}

TEST(ScheduleErrors, ANumberIsMissing) {
  EXPECT_USER_ERROR(
      Schedule::parse("exponential 0.5 * constant 1"),
      lines("the factor exponential lacks its number n", "schedule \"exponential 0.5 * constant 1\", column 17",
            "write exponential x n, x from 1e-09, n from 1e-09"));
  EXPECT_USER_ERROR(Schedule::parse("offset"), "the factor offset lacks its number n");
}

TEST(ScheduleErrors, TheTotalIsMissing) {
  EXPECT_USER_ERROR(Schedule::parse("cosine"),
                    lines("the factor cosine needs the total number of steps", "schedule \"cosine\", column 7",
                          "say how many steps the training has, or write T: cosine [T] [floor] [begin]"));
  EXPECT_USER_ERROR(Schedule::parse("linear_warmup 0.1"), "the factor linear_warmup needs the total number of steps");
  EXPECT_USER_ERROR(Schedule::parse("noam 100"), "the factor noam needs the total number of steps");
}

}  // namespace
}  // namespace weft::test::schedule_test
