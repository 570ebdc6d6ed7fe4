// Our elementary functions against those of the C library in long double, over dense grids and at the ends.
#include "kernels/vmath.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace weft::vmath_test {
namespace {

using Wide = long double;
using Exact = Wide (*)(Wide);

// Evenly spaced, ends included.
std::vector<double> grid(double low, double high, int points = 20000) {
  std::vector<double> all;
  for (int i = 0; i <= points; ++i) all.push_back(low + (high - low) * i / points);
  return all;
}

// Evenly spaced in the exponent, of both signs if wanted.
std::vector<double> powers(double low, double high, bool both, int points = 4000) {
  std::vector<double> all;
  for (int i = 0; i <= points; ++i) {
    const double x = std::exp(std::log(low) + (std::log(high) - std::log(low)) * i / points);
    all.push_back(x);
    if (both) all.push_back(-x);
  }
  return all;
}

void expect_relative(double (*f)(double), Exact exact, const std::vector<double>& xs, double bound) {
  double worst = 0, at = 0;
  for (const double x : xs) {
    const Wide want = exact(x);
    if (want == 0 || std::fabs(want) < 1e-300L) continue;  // relative bounds end where results are subnormal
    const double error = static_cast<double>(std::fabs((f(x) - want) / want));
    if (!(error <= worst)) worst = error, at = x;
  }
  EXPECT_LE(worst, bound) << "at " << at;
}

void expect_absolute(double (*f)(double), Exact exact, const std::vector<double>& xs, double bound) {
  double worst = 0, at = 0;
  for (const double x : xs) {
    const double error = static_cast<double>(std::fabs(f(x) - exact(x)));
    if (!(error <= worst)) worst = error, at = x;
  }
  EXPECT_LE(worst, bound) << "at " << at;
}

TEST(Vmath, Exp) {
  expect_relative(vmath::exp, std::exp, grid(-1, 1), 4e-16);
  expect_relative(vmath::exp, std::exp, grid(-690, 709.7), 4e-16);
  expect_relative(vmath::exp, std::exp, powers(1e-300, 1, true), 4e-16);
  for (const double x : grid(-745.1, -708))
    EXPECT_NEAR(vmath::exp(x), std::exp(x), 2 * 0x1p-1074 + 4e-16 * std::exp(x)) << x;
  EXPECT_EQ(vmath::exp(0.0), 1);
  EXPECT_EQ(vmath::exp(709.79), vmath::kInfinity);
  EXPECT_EQ(vmath::exp(1e300), vmath::kInfinity);
  EXPECT_EQ(vmath::exp(vmath::kInfinity), vmath::kInfinity);
  EXPECT_EQ(vmath::exp(-vmath::kInfinity), 0);
  EXPECT_EQ(vmath::exp(-746.0), 0);
  EXPECT_GT(vmath::exp(-745.0), 0);
  EXPECT_LT(vmath::exp(709.78), vmath::kInfinity);
  EXPECT_TRUE(std::isnan(vmath::exp(vmath::kNaN)));
}

TEST(Vmath, Expm1) {
  expect_relative(vmath::expm1, std::expm1, grid(-1, 1), 1e-15);
  expect_relative(vmath::expm1, std::expm1, grid(-50, 700), 1e-15);
  expect_relative(vmath::expm1, std::expm1, powers(1e-300, 1, true), 1e-15);
  EXPECT_EQ(vmath::expm1(0x1p-1074), 0x1p-1074);
  EXPECT_EQ(vmath::expm1(-vmath::kInfinity), -1);
  EXPECT_EQ(vmath::expm1(vmath::kInfinity), vmath::kInfinity);
  EXPECT_TRUE(std::isnan(vmath::expm1(vmath::kNaN)));
}

TEST(Vmath, Log) {
  expect_relative(vmath::log, std::log, grid(0.5, 2), 1e-15);
  expect_relative(vmath::log, std::log, grid(0.9999, 1.0001), 1e-15);
  expect_relative(vmath::log, std::log, powers(1e-307, 0.5, false), 4e-16);
  expect_relative(vmath::log, std::log, powers(2, 1e308, false), 4e-16);
  for (const double x : {0x1p-1074, 0x1.8p-1060, 0x1p-1023}) EXPECT_NEAR(vmath::log(x), std::log(x), 3e-13) << x;
  EXPECT_EQ(vmath::log(1.0), 0);
  EXPECT_EQ(vmath::log(0.0), -vmath::kInfinity);
  EXPECT_EQ(vmath::log(-0.0), -vmath::kInfinity);
  EXPECT_EQ(vmath::log(vmath::kInfinity), vmath::kInfinity);
  EXPECT_TRUE(std::isnan(vmath::log(-1.0)));
  EXPECT_TRUE(std::isnan(vmath::log(vmath::kNaN)));
}

TEST(Vmath, Log1p) {
  expect_relative(vmath::log1p, std::log1p, grid(-0.999, 2), 1e-15);
  expect_relative(vmath::log1p, std::log1p, powers(1e-300, 1e300, false), 1e-15);
  expect_relative(vmath::log1p, std::log1p, powers(1e-300, 0.99, true), 1e-15);
  EXPECT_EQ(vmath::log1p(-0x1p-1074), -0x1p-1074);
  EXPECT_EQ(vmath::log1p(-1.0), -vmath::kInfinity);
  EXPECT_EQ(vmath::log1p(vmath::kInfinity), vmath::kInfinity);
  EXPECT_TRUE(std::isnan(vmath::log1p(-2.0)));
  EXPECT_TRUE(std::isnan(vmath::log1p(vmath::kNaN)));
}

TEST(Vmath, SinAndCos) {
  for (const auto& [f, exact] : {std::pair<double (*)(double), Exact>(vmath::sin, std::sin), {vmath::cos, std::cos}}) {
    expect_absolute(f, exact, grid(-10, 10), 3e-16);
    expect_absolute(f, exact, grid(-1e6, 1e6, 200000), 3e-16);
    expect_absolute(f, exact, powers(1e-300, 1e6, true), 3e-16);
    for (int k = -40; k <= 40; ++k) expect_absolute(f, exact, {k * 1.5707963267948966}, 3e-16);  // where they vanish
    EXPECT_TRUE(std::isnan(f(vmath::kInfinity)));
    EXPECT_TRUE(std::isnan(f(-vmath::kInfinity)));
    EXPECT_TRUE(std::isnan(f(vmath::kNaN)));
  }
  EXPECT_EQ(vmath::sin(0.0), 0);
  EXPECT_EQ(vmath::cos(0.0), 1);
  EXPECT_EQ(vmath::sin(0x1p-1074), 0x1p-1074);
}

TEST(Vmath, Asinh) {
  expect_relative(vmath::asinh, std::asinh, grid(-30, 30), 1e-15);
  expect_relative(vmath::asinh, std::asinh, grid(0x1p28 - 4, 0x1p28 + 4), 1e-15);
  expect_relative(vmath::asinh, std::asinh, powers(1e-300, 1e308, true), 1e-15);
  EXPECT_EQ(vmath::asinh(0x1p-1074), 0x1p-1074);
  EXPECT_TRUE(std::signbit(vmath::asinh(-0.0)));
  EXPECT_EQ(vmath::asinh(vmath::kInfinity), vmath::kInfinity);
  EXPECT_EQ(vmath::asinh(-vmath::kInfinity), -vmath::kInfinity);
  EXPECT_TRUE(std::isnan(vmath::asinh(vmath::kNaN)));
}

TEST(Vmath, Tanh) {
  expect_relative(vmath::tanh, std::tanh, grid(-30, 30), 2e-15);
  expect_relative(vmath::tanh, std::tanh, grid(-1, 1), 2e-15);
  expect_relative(vmath::tanh, std::tanh, powers(1e-300, 20, true), 2e-15);
  EXPECT_EQ(vmath::tanh(vmath::kInfinity), 1);
  EXPECT_EQ(vmath::tanh(-vmath::kInfinity), -1);
  EXPECT_TRUE(std::isnan(vmath::tanh(vmath::kNaN)));
}

TEST(Vmath, Erf) {
  expect_relative(vmath::erf, std::erf, grid(-7, 7), 3e-15);
  expect_relative(vmath::erf, std::erf, powers(1e-300, 6, true), 3e-15);
  EXPECT_EQ(vmath::erf(vmath::kInfinity), 1);
  EXPECT_EQ(vmath::erf(-vmath::kInfinity), -1);
  EXPECT_EQ(vmath::erf(0.0), 0);
  EXPECT_TRUE(std::isnan(vmath::erf(vmath::kNaN)));
}

TEST(Vmath, SigmoidAndSoftplus) {
  expect_relative(
      vmath::sigmoid, [](Wide x) { return 1 / (1 + std::exp(-x)); }, grid(-690, 700), 1e-15);
  expect_relative(
      vmath::softplus, [](Wide x) { return std::log1p(std::exp(x)); }, grid(-690, 700), 2e-15);
  EXPECT_EQ(vmath::sigmoid(vmath::kInfinity), 1);
  EXPECT_EQ(vmath::sigmoid(-vmath::kInfinity), 0);
  EXPECT_EQ(vmath::softplus(vmath::kInfinity), vmath::kInfinity);
  EXPECT_EQ(vmath::softplus(-vmath::kInfinity), 0);
  EXPECT_TRUE(std::isnan(vmath::sigmoid(vmath::kNaN)));
  EXPECT_TRUE(std::isnan(vmath::softplus(vmath::kNaN)));
}

// The x with probability p below it, by bisection; from the nearer end, so that nothing cancels.
Wide inverse_by_bisection(double p) {
  const Wide root = std::sqrt(Wide(2));
  const Wide q = Wide(p) - 0.5L;
  const auto above = [&](Wide x) {  // is x too large?
    if (std::fabs(q) < 0.4L) return std::erf(x / root) / 2 > q;
    return q < 0 ? std::erfc(-x / root) / 2 > Wide(p) : std::erfc(x / root) / 2 < 1 - Wide(p);
  };
  Wide low = -10, high = 10;
  for (int i = 0; i < 90; ++i) {
    const Wide middle = (low + high) / 2;
    (above(middle) ? high : low) = middle;
  }
  return (low + high) / 2;
}

TEST(Vmath, InverseNormal) {
  std::vector<double> ps = grid(0x1p-26, 1 - 0x1p-26, 3000);
  for (const double p : powers(0x1p-26, 0.4, false, 1000)) {
    ps.push_back(p);
    ps.push_back(1 - p);
    ps.push_back(0.5 + p / 1000);
  }
  double worst = 0, at = 0;
  for (const double p : ps) {
    const Wide want = inverse_by_bisection(p);
    if (std::fabs(want) < 1e-15L) continue;
    const double error = static_cast<double>(std::fabs((vmath::inverse_normal(p) - want) / want));
    if (!(error <= worst)) worst = error, at = p;
  }
  EXPECT_LE(worst, 1e-15) << "at " << at;
  EXPECT_EQ(vmath::inverse_normal(0.5), 0);
}

TEST(Vmath, NormalBelow) {
  expect_absolute(
      vmath::normal_below, [](Wide x) { return std::erfc(-x / std::sqrt(Wide(2))) / 2; }, grid(-5, 5), 1e-15);
  for (const double x : grid(-4, 4, 200)) EXPECT_NEAR(vmath::inverse_normal(vmath::normal_below(x)), x, 1e-11) << x;
}

}  // namespace
}  // namespace weft::vmath_test
