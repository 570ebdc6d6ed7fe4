// The table of pointwise functions against the C library, over floats and integers; no entry is left out.
#include "kernels/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numbers>

#include "language/op_def.h"

namespace weft::pointwise_test {
namespace {

using I = std::int64_t;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr I kLeast = std::numeric_limits<I>::min(), kMost = std::numeric_limits<I>::max();

double selu(double x) { return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * std::expm1(x)); }

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) { return (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6; }

const std::map<std::string, std::function<double(double)>> kUnary = {
    {"gelu", gelu},
    {"gelu_slope", gelu_slope},
    {"identity", [](double x) { return x; }},
    {"negative", [](double x) { return -x; }},
    {"abs", [](double x) { return std::abs(x); }},
    {"sign", [](double x) { return x == 0 || std::isnan(x) ? x : std::copysign(1, x); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"square", [](double x) { return x * x; }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
    {"reciprocal", [](double x) { return 1 / x; }},
    {"exp", [](double x) { return std::exp(x); }},
    {"expm1", [](double x) { return std::expm1(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"log1p", [](double x) { return std::log1p(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", [](double x) { return std::log1p(std::exp(x)); }},
    {"relu", [](double x) { return x > 0 ? x : 0; }},
    {"elu", [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"selu", selu},
};

const std::map<std::string, std::function<double(double, double)>> kBinary = {
    {"add", [](double x, double y) { return x + y; }},
    {"subtract", [](double x, double y) { return x - y; }},
    {"multiply", [](double x, double y) { return x * y; }},
    {"divide", [](double x, double y) { return x / y; }},
    {"pow", [](double x, double y) { return std::pow(x, y); }},
    {"minimum", [](double x, double y) { return std::min(x, y); }},
    {"maximum", [](double x, double y) { return std::max(x, y); }},
    {"floordiv", [](double x, double y) { return std::floor(x / y); }},
    {"mod", [](double x, double y) { return x - y * std::floor(x / y); }},
    {"less", [](double x, double y) { return x < y; }},
    {"less_equal", [](double x, double y) { return x <= y; }},
    {"greater", [](double x, double y) { return x > y; }},
    {"greater_equal", [](double x, double y) { return x >= y; }},
    {"equal", [](double x, double y) { return x == y; }},
    {"not_equal", [](double x, double y) { return x != y; }},
};

const std::vector<std::string> kOfBools = {"logical_not", "logical_and", "logical_or"};

// Every entry of the table is an op, and is in the maps above.
TEST(Pointwise, EveryFunctionIsTested) {
  std::vector<std::string> ops;
  for (const OpDef* op : op_catalog()) ops.push_back(op->name);
  for (const Pointwise& function : pointwise_functions()) {
    const std::string name(function.name);
    EXPECT_EQ(kUnary.contains(name) + kBinary.contains(name) + std::ranges::count(kOfBools, name), 1) << name;
    EXPECT_EQ(std::ranges::count(ops, name), 1) << name;
  }
  EXPECT_EQ(pointwise_functions().size(), kUnary.size() + kBinary.size() + kOfBools.size());
  EXPECT_EQ(find_pointwise("no such function"), nullptr);
}

// There is a body for the numbers that the entry takes, and for no others.
TEST(Pointwise, BodiesAreThoseOfTheDtypesTaken) {
  for (const Pointwise& f : pointwise_functions()) {
    const bool floats = f.takes_dtype(DType::kF32),
               integers = f.takes_dtype(DType::kI32) || f.takes_dtype(DType::kBool);
    EXPECT_EQ(f.f1 != nullptr, floats && f.arity == 1) << f.name;
    EXPECT_EQ(f.f2 != nullptr, floats && f.arity == 2) << f.name;
    EXPECT_EQ(f.i1 != nullptr, integers && f.arity == 1) << f.name;
    EXPECT_EQ(f.i2 != nullptr, integers && f.arity == 2) << f.name;
  }
}

// What the entries say of order, at many points, the ends and NaN. Up to rounding: an approximation may be a few units
// out of order.
TEST(Pointwise, IncreasingFunctionsNeverFall) {
  for (const Pointwise& f : pointwise_functions()) {
    if (!f.is(pointwise::kIncreasing)) continue;
    ASSERT_EQ(f.arity, 1) << f.name;
    EXPECT_TRUE(std::isnan(f.f1(kNaN))) << f.name;
    double last = f.f1(-kInf);
    ASSERT_FALSE(std::isnan(last)) << f.name;
    for (double x = -750; x < 750; x += 0.0137) {
      EXPECT_LE(last, f.f1(x) + 4e-15 * std::fabs(last)) << f.name << " of " << x;
      last = f.f1(x);
    }
    EXPECT_LE(last, f.f1(kInf)) << f.name;
  }
}

// What an entry says of its body, at numbers whose sums and products are exact.
void expect_algebra(const Pointwise& f, double a, double b) {
  using namespace pointwise;
  const auto says = [&](Algebra property, const auto& holds) {
    EXPECT_TRUE(!f.is(property) || holds()) << f.name << " of " << a << ", " << b << ": property " << property;
  };
  says(kIdentity, [&] { return f.f1(a) == a; });
  says(kUndoesItself, [&] { return f.f1(f.f1(a)) == a; });
  says(kZeroFirst, [&] { return f.f2(0, a) == a; });
  says(kZeroSecond, [&] { return f.f2(a, 0) == a; });
  says(kOneFirst, [&] { return f.f2(1, a) == a; });
  says(kOneSecond, [&] { return f.f2(a, 1) == a; });
  says(kAdditive,
       [&] { return f.arity == 1 ? f.f1(a + b) == f.f1(a) + f.f1(b) : f.f2(a + b, b + 3) == f.f2(a, b) + f.f2(b, 3); });
  says(kLinearInEach, [&] { return f.f2(a + 1, b) == f.f2(a, b) + f.f2(1, b); });
  says(kLinearInEach, [&] { return f.f2(b, a + 1) == f.f2(b, a) + f.f2(b, 1); });
  says(kLinearInFirst, [&] { return std::fabs(f.f2(a + 1, b) - f.f2(a, b) - f.f2(1, b)) < 1e-13; });
  says(kShiftsFirst, [&] { return f.f2(a, b) < f.f2(a + 1, b); });
  says(kShiftsSecond, [&] { return f.f2(b, a) < f.f2(b, a + 1); });
  says(kScales, [&] { return b < 0 || (f.f2(a, b) < f.f2(a + 1, b) && f.f2(b, a) < f.f2(b, a + 1)); });
  says(kJoinsMax, [&] { return f.f2(a, b) == std::max(a, b); });
  says(kJoinsMin, [&] { return f.f2(a, b) == std::min(a, b); });
}

TEST(Pointwise, AlgebraHoldsOfTheBodies) {
  const std::vector<double> numbers = {-7.25, -1, -0.5, 0.125, 1, 3, 40};
  for (const Pointwise& f : pointwise_functions())
    for (const double a : numbers)
      for (const double b : numbers) expect_algebra(f, a, b);
}

TEST(Pointwise, MisuseIsTold) {
  using enum DType;
  EXPECT_EQ(pointwise_misuse("tanh", {kBF16}, kBF16), "");
  EXPECT_EQ(pointwise_misuse("less", {kI64, kI64}, kBool), "");
  EXPECT_EQ(pointwise_misuse("tahn", {kF32}, kF32), "there is no pointwise function 'tahn': did you mean 'tanh'?");
  EXPECT_EQ(pointwise_misuse("frobnicate", {kF32}, kF32), "there is no pointwise function 'frobnicate'");
  EXPECT_EQ(pointwise_misuse("tanh", {kF32, kF32}, kF32), "'tanh' takes 1 operand, not 2");
  EXPECT_EQ(pointwise_misuse("add", {kF32}, kF32), "'add' takes 2 operands, not 1");
  EXPECT_EQ(pointwise_misuse("add", {kF32, kBF16}, kF32), "'add' takes operands of one dtype, not f32 and bf16");
  EXPECT_EQ(pointwise_misuse("exp", {kI32}, kI32), "'exp' takes no i32");
  EXPECT_EQ(pointwise_misuse("logical_and", {kU8, kU8}, kBool), "'logical_and' takes no u8");
  EXPECT_EQ(pointwise_misuse("multiply", {kBool, kBool}, kBool), "'multiply' takes no bool");
  EXPECT_EQ(pointwise_misuse("exp", {kF32}, kBF16), "'exp' of f32 gives f32, not bf16");
  EXPECT_EQ(pointwise_misuse("equal", {kF32, kF32}, kF32), "'equal' of f32 gives bool, not f32");
}

void expect_near(double got, double want, const std::string& what) {
  if (std::isnan(want)) EXPECT_TRUE(std::isnan(got)) << what << " gave " << got;
  else if (std::isinf(want)) EXPECT_EQ(got, want) << what;
  else EXPECT_NEAR(got, want, 4e-15 * std::max(1e-300, std::fabs(want))) << what;
}

TEST(Pointwise, UnaryFunctionsOfFloats) {
  std::vector<double> xs = {0.0, -0.0, 1, -1, 0.5, -0.5, 1e-300, -1e-300, 1e10, 700, -700, kInf, -kInf, kNaN};
  for (int i = -400; i <= 400; ++i) xs.push_back(i * 0.0371);
  for (const auto& [name, f] : kUnary) {
    const Pointwise* function = find_pointwise(name);
    ASSERT_TRUE(function && function->arity == 1 && function->f1) << name;
    for (const double x : xs) {
      if ((name == "sin" || name == "cos") && std::fabs(x) > 1e6) continue;  // beyond the stated range
      double want = f(x);
      if (name.starts_with("gelu")) {  // far from 0 the formula loses all digits; the derivative is of differences
        if (std::fabs(x) < 6) {
          EXPECT_NEAR(function->f1(x), want, name == "gelu" ? 4e-15 : 1e-9) << name << " of " << x;
        }
        continue;
      }
      if (name == "softplus" && x >= 700) want = x;  // the naive form overflows
      if (name == "relu" && std::isnan(x)) want = kNaN;
      if ((name == "sin" || name == "cos") && std::isfinite(x)) EXPECT_NEAR(function->f1(x), want, 3e-16);
      else expect_near(function->f1(x), want, name + " of " + std::to_string(x));
    }
  }
}

TEST(Pointwise, GeluAtItsEnds) {
  const Pointwise *gelu = find_pointwise("gelu"), *slope = find_pointwise("gelu_slope");
  EXPECT_EQ(gelu->f1(kInf), kInf);
  EXPECT_EQ(gelu->f1(-kInf), 0);
  EXPECT_EQ(slope->f1(kInf), 1);
  EXPECT_EQ(slope->f1(-kInf), 0);
  EXPECT_TRUE(std::isnan(gelu->f1(kNaN)) && std::isnan(slope->f1(kNaN)));
  EXPECT_LT(gelu->f1(-14), 0);  // not yet 0
  EXPECT_GT(gelu->f1(-14), -1e-60);
}

TEST(Pointwise, BinaryFunctionsOfFloats) {
  const std::vector<double> xs = {0.3, 1, 2, 2.5, -0.7, -2, -9.25, 1e10, 0};
  for (const auto& [name, f] : kBinary) {
    const Pointwise* function = find_pointwise(name);
    ASSERT_TRUE(function && function->arity == 2 && function->f2) << name;
    for (const double x : xs)
      for (const double y : xs)
        if (name != "pow" || (x > 0 && std::fabs(y) < 100))
          expect_near(function->f2(x, y), f(x, y), name + " of " + std::to_string(x) + " and " + std::to_string(y));
  }
}

TEST(Pointwise, NaNIsNeverLost) {
  for (const char* name : {"minimum", "maximum", "add", "multiply"}) {
    EXPECT_TRUE(std::isnan(find_pointwise(name)->f2(kNaN, 1))) << name;
    EXPECT_TRUE(std::isnan(find_pointwise(name)->f2(1, kNaN))) << name;
  }
  EXPECT_TRUE(std::isnan(find_pointwise("relu")->f1(kNaN)));
  EXPECT_EQ(find_pointwise("equal")->f2(kNaN, kNaN), 0);
  EXPECT_EQ(find_pointwise("not_equal")->f2(kNaN, kNaN), 1);
}

// floordiv goes to minus infinity and mod takes the sign of the divisor: x == y * floordiv + mod always.
TEST(Pointwise, IntegerDivisionFloors) {
  const auto floordiv = find_pointwise("floordiv")->i2, mod = find_pointwise("mod")->i2;
  for (I x = -20; x <= 20; ++x)
    for (I y = -7; y <= 7; ++y) {
      if (y == 0) continue;
      EXPECT_EQ(floordiv(x, y), static_cast<I>(std::floor(static_cast<double>(x) / static_cast<double>(y))))
          << x << " " << y;
      EXPECT_EQ(y * floordiv(x, y) + mod(x, y), x);
      EXPECT_TRUE(mod(x, y) == 0 || (mod(x, y) < 0) == (y < 0)) << x << " " << y;
    }
  EXPECT_EQ(floordiv(5, 0), 0);
  EXPECT_EQ(mod(5, 0), 0);
  EXPECT_EQ(floordiv(kLeast, -1), kLeast);  // wraps, as all else does
  EXPECT_EQ(mod(kLeast, -1), 0);
  EXPECT_EQ(floordiv(kLeast, 2), kLeast / 2);
}

TEST(Pointwise, IntegersWrap) {
  EXPECT_EQ(find_pointwise("add")->i2(kMost, 1), kLeast);
  EXPECT_EQ(find_pointwise("subtract")->i2(kLeast, 1), kMost);
  EXPECT_EQ(find_pointwise("multiply")->i2(kMost, 2), -2);
  EXPECT_EQ(find_pointwise("negative")->i1(kLeast), kLeast);
  EXPECT_EQ(find_pointwise("abs")->i1(kLeast), kLeast);
  EXPECT_EQ(find_pointwise("square")->i1(-3), 9);
  EXPECT_EQ(find_pointwise("sign")->i1(-3), -1);
  EXPECT_EQ(find_pointwise("floor")->i1(-3), -3);
}

TEST(Pointwise, IntegersCompareBeyondWhatDoublesHold) {
  EXPECT_EQ(find_pointwise("less")->i2(kMost - 1, kMost), 1);
  EXPECT_EQ(find_pointwise("equal")->i2(kMost - 1, kMost), 0);
  EXPECT_EQ(find_pointwise("maximum")->i2(kMost - 1, kMost), kMost);
  EXPECT_EQ(find_pointwise("minimum")->i2(kMost - 1, kMost), kMost - 1);
}

TEST(Pointwise, Truths) {
  for (I x = 0; x < 2; ++x) {
    EXPECT_EQ(find_pointwise("logical_not")->i1(x), 1 - x);
    for (I y = 0; y < 2; ++y) {
      EXPECT_EQ(find_pointwise("logical_and")->i2(x, y), x & y);
      EXPECT_EQ(find_pointwise("logical_or")->i2(x, y), x | y);
    }
  }
}

}  // namespace
}  // namespace weft::pointwise_test
