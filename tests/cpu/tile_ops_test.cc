// Every vector loop against the scalar function of the same name: f32 over the whole range of floats, within the bounds
// that vmath-inl.h states, and against the same bodies over single floats, to the bit.
#include "runtime/cpu/tile_ops.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "base/dispatch.h"
#include "runtime/cpu/tile_convert.h"
#include "kernels/pointwise.h"
#include "kernels/vmath.h"
#include "support/soak.h"

namespace weft::cpu::tile_ops_test {
namespace {

// The functions of the table that take numbers of this dtype.
std::vector<std::string> functions(int arity, DType dtype) {
  std::vector<std::string> names;
  for (const Pointwise& function : pointwise_functions())
    if (function.arity == arity && function.takes_dtype(dtype)) names.emplace_back(function.name);
  return names;
}
const std::vector<std::string> kUnary = functions(1, DType::kF32), kBinary = functions(2, DType::kF32);

// In ulp of the f32 result. What is not here is exact: the double result, rounded.
const std::map<std::string, double> kBounds = {
    {"exp", 1.02}, {"asinh", 1},   {"expm1", 2},    {"log", 1},   {"log1p", 2}, {"tanh", 2},   {"erf", 2}, {"sin", 1},
    {"cos", 1},    {"sigmoid", 3}, {"softplus", 3}, {"rsqrt", 2}, {"elu", 2},   {"selu", 3.5}, {"pow", 1},
    {"gelu", 160}, {"gelu_slope", 20}};
double bound(const std::string& name) {
  const auto found = kBounds.find(name);
  return found == kBounds.end() ? 0 : found->second;
}

// Distance of a float from an exact value, in ulp of the float nearest to it, beyond the half that rounding costs.
double ulp_off(float got, double want) {
  const auto nearest = static_cast<float>(want);
  if (std::isnan(got) && std::isnan(nearest)) return 0;
  if (got == nearest) return 0;
  const float size = std::fabs(nearest), most = std::numeric_limits<float>::max();
  if (!std::isfinite(got) || !std::isfinite(nearest)) {
    // One step over the edge of the finite ones is an error like any other.
    if (std::isinf(got) && size == most && (got > 0) == (nearest > 0)) return 1;
    if (std::isinf(nearest) && std::fabs(got) == most && (got > 0) == (nearest > 0)) return 1;
    return 1e9;
  }
  const float next = std::nextafter(size, size < most ? most : 0.0f);
  return std::fabs(got - want) / std::fabs(static_cast<double>(next) - size);
}

// Of what crosses 0, where digits cancel: in ulp of 1.
double distance_of(const std::string& name, float got, double want) {
  const bool finite = std::isfinite(got) && std::isfinite(want);
  return name == "gelu_slope" && finite ? std::fabs(got - want) * 0x1p23 : ulp_off(got, want);
}

void run(TileOp op, const std::vector<float>& x, std::vector<float>& out) {
  TileArgs args;
  args.in[0] = x.data();
  args.out = out.data();
  args.rows = 1;
  args.cols = x.size();
  op(args);
}

// Every `step`-th float.
void expect_within_bounds(const std::string& name, std::uint64_t step) {
  const TileOp op = find_tile_op(name, Lane::kF32, Forms::kTiles);
  ASSERT_NE(op, nullptr) << name;
  const Pointwise* function = find_pointwise(name);
  std::vector<float> x(4093), out(4093);
  double worst = 0;
  float worst_at = 0;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32);) {
    for (float& number : x) {
      number = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      bits += step;
    }
    run(op, x, out);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double off = distance_of(name, out[i], function->f1(x[i]));
      if (!(off <= worst)) {
        worst = off;
        worst_at = x[i];
      }
    }
  }
  EXPECT_LE(worst, bound(name)) << name << " of " << worst_at;
  testing::Test::RecordProperty(name, std::to_string(worst));
}

TEST(TileOps, UnaryFunctionsOverAllFloats) {
  for (const std::string& name : kUnary) expect_within_bounds(name, name == "erf" ? 65537 : 10007);
}

TEST(SoakTileOps, UnaryFunctionsOfEveryFloat) {
  for (const std::string& name : kUnary)
    expect_within_bounds(name, (name == "erf" ? 16 : 1) * (100 / test::soak_count(100)));
}

TEST(TileOps, SignedZerosAndEnds) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::string& name : kUnary) {
    const Pointwise* function = find_pointwise(name);
    const std::vector<float> x = {0.0f, -0.0f, inf, -inf, NAN, 1.0f, -1.0f, 0x1p-149f, -0x1p-149f, 88.8f, -104.5f};
    std::vector<float> out(x.size());
    run(find_tile_op(name, Lane::kF32, Forms::kTiles), x, out);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto want = static_cast<float>(function->f1(x[i]));
      EXPECT_LE(distance_of(name, out[i], function->f1(x[i])), bound(name)) << name << " of " << x[i];
      if (want == 0 && out[i] == 0) {
        EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << name << " of " << x[i];
      }
    }
  }
}

float random_float(std::mt19937& random) {
  switch (random() % 4) {
    case 0: return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    case 1: return static_cast<float>(random() % 9) - 4;
    default: return std::uniform_real_distribution<float>(-20, 20)(random);
  }
}

std::int32_t bits_of_result(float x) { return std::bit_cast<std::int32_t>(x); }
std::int32_t bits_of_result(bool x) { return x; }

TEST(TileOps, BinaryFunctionsInAllForms) {
  std::mt19937 random(1);
  constexpr std::size_t kRows = 5, kCols = 1003;
  std::vector<float> x(kRows * kCols), y(kRows * kCols), out(kRows * kCols);
  for (float& number : x) number = random_float(random);
  for (float& number : y) number = random_float(random);
  for (const std::string& name : kBinary)
    for (Forms forms : {Forms::kTiles, Forms::kFirstPerRow, Forms::kSecondPerRow}) {
      TileArgs args{{x.data(), y.data()}, {kCols, kCols}, out.data(), kCols, kRows, kCols};
      find_tile_op(name, Lane::kF32, forms)(args);
      for (std::size_t r = 0; r < kRows; ++r)
        for (std::size_t c = 0; c < kCols; ++c) {
          const float a = x[r * kCols + (forms == Forms::kFirstPerRow ? 0 : c)];
          const float b = y[r * kCols + (forms == Forms::kSecondPerRow ? 0 : c)];
          const double want = find_pointwise(name)->f2(a, b);
          const float got = out[r * kCols + c];
          if (find_pointwise(name)->gives_truth()) ASSERT_EQ(std::bit_cast<std::int32_t>(got), want) << name;
          else ASSERT_LE(ulp_off(got, want), bound(name)) << name << " of " << a << ", " << b << ": " << got;
        }
    }
}

namespace scalars {

namespace math = vmath;
#define WEFT_FN inline
#include "kernels/bodies-inl.h"
#include "kernels/pointwise-inl.h"
#undef WEFT_FN

}  // namespace scalars

template <class F, unsigned kTakes, int kArity>
void expect_bits_of_single_floats(std::string_view name) {
  if constexpr ((kTakes & pointwise::kFloats) != 0) {
    std::mt19937 random(7);
    std::vector<float> x(100003), y(100003), out(100003);
    for (float& number : x) number = random_float(random);
    for (float& number : y) number = random_float(random);
    find_tile_op(name, Lane::kF32, Forms::kTiles)({{x.data(), y.data()}, {}, out.data(), 0, 1, x.size()});
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::int32_t want;
      if constexpr (kArity == 1) want = bits_of_result(F()(x[i]));
      else want = bits_of_result(F()(x[i], y[i]));
      const auto got = std::bit_cast<std::int32_t>(out[i]);
      const bool both_nan = out[i] != out[i] && std::bit_cast<float>(want) != std::bit_cast<float>(want);
      ASSERT_TRUE(got == want || both_nan) << name << " of " << x[i] << ", " << y[i];
    }
  }
}

// The bodies over one float at a time, which is what CUDA compiles, have the bits of the vectors.
TEST(TileOps, VectorsHaveTheBitsOfSingleFloats) {
  using namespace pointwise;
#define WEFT_UNARY(name, takes, gives, flops, algebra, ...) \
  expect_bits_of_single_floats<scalars::name, takes, 1>(#name);
#define WEFT_BINARY(name, takes, gives, flops, algebra, ...) \
  expect_bits_of_single_floats<scalars::name, takes, 2>(#name);
#include "kernels/pointwise-inl.h"
}

TEST(TileOps, IntegersAsTheScalars) {
  std::mt19937 random(2);
  constexpr std::size_t kCount = 515;
  std::vector<std::int32_t> x(kCount), y(kCount), out(kCount);
  for (auto& number : x)
    number = random() % 3 ? static_cast<std::int32_t>(random()) : static_cast<std::int32_t>(random() % 3) - 1;
  for (auto& number : y)
    number = random() % 3 ? static_cast<std::int32_t>(random()) : static_cast<std::int32_t>(random() % 3) - 1;
  x[0] = std::numeric_limits<std::int32_t>::min(), y[0] = -1;
  for (const Pointwise& entry : pointwise_functions()) {
    if (!entry.takes_dtype(DType::kI32) && !entry.takes_dtype(DType::kBool)) continue;
    const Pointwise* function = &entry;
    const std::string_view name = entry.name;
    find_tile_op(name, Lane::kI32, Forms::kTiles)({{x.data(), y.data()}, {}, out.data(), 0, 1, kCount});
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::int64_t want = function->arity == 1 ? function->i1(x[i]) : function->i2(x[i], y[i]);
      ASSERT_EQ(out[i], static_cast<std::int32_t>(want)) << name << " of " << x[i] << ", " << y[i];
    }
  }
}

TEST(TileOps, RowSumsAreExactEnough) {
  std::mt19937 random(3);
  for (std::size_t cols : {1, 3, 15, 16, 17, 63, 64, 65, 200, 2048, 2049, 8192, 100000}) {
    std::vector<float> x(cols);
    for (float& number : x) number = std::uniform_real_distribution<float>(0, 1)(random);
    double exact = 0;
    for (float number : x) exact += number;
    float sum = 0, most = 0, least = 0;
    row_reduction(Reduce::kSum, Lane::kF32)({{x.data()}, {}, &sum, 0, 1, cols});
    row_reduction(Reduce::kMax, Lane::kF32)({{x.data()}, {}, &most, 0, 1, cols});
    row_reduction(Reduce::kMin, Lane::kF32)({{x.data()}, {}, &least, 0, 1, cols});
    EXPECT_NEAR(sum, exact, 3e-7 * exact) << cols;
    EXPECT_EQ(most, *std::ranges::max_element(x));
    EXPECT_EQ(least, *std::ranges::min_element(x));
    x[cols / 2] = NAN;
    row_reduction(Reduce::kMax, Lane::kF32)({{x.data()}, {}, &most, 0, 1, cols});
    EXPECT_TRUE(std::isnan(most)) << cols;
  }
}

TEST(TileOps, ColumnSumsGoOnFromTileToTile) {
  constexpr std::size_t kRows = 70, kCols = 37;
  std::vector<float> x(kRows * kCols);
  std::mt19937 random(4);
  for (float& number : x) number = std::uniform_real_distribution<float>(0, 1)(random);
  std::vector<double> sums(kCols, 0);
  for (int times = 0; times < 3; ++times)
    column_reduction(Reduce::kSum, Lane::kF32)({{x.data()}, {kCols}, sums.data(), 0, kRows, kCols});
  for (std::size_t c = 0; c < kCols; ++c) {
    double exact = 0;
    for (std::size_t r = 0; r < kRows; ++r) exact += x[r * kCols + c];
    EXPECT_NEAR(sums[c], 3 * exact, 3e-7 * 3 * exact);
  }
}

TEST(TileOps, EveryStoredNumberOf16BitsComesBack) {
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    std::vector<std::uint16_t> bits(65536), back(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    std::vector<float> lanes(65536);
    load_op(dtype)(bits.data(), 1, lanes.data(), lanes.size());
    store_op(dtype)(lanes.data(), back.data(), 1, lanes.size());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const bool is_nan = lanes[i] != lanes[i];
      ASSERT_TRUE(is_nan || back[i] == bits[i]) << i;
    }
    std::vector<float> again(65536);
    load_op(dtype)(back.data(), 1, again.data(), again.size());
    for (std::size_t i = 0; i < bits.size(); ++i) ASSERT_EQ(again[i] != again[i], lanes[i] != lanes[i]) << i;
  }
}

TEST(TileOps, RoundingAndCastsAsTheScalars) {
  std::mt19937 random(5);
  std::vector<float> x(2003), out(2003);
  for (float& number : x) number = random_float(random);
  for (DType dtype : {DType::kBF16, DType::kF16}) {
    run(fit_op(dtype), x, out);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (x[i] == x[i]) ASSERT_EQ(out[i], rounded(x[i], dtype)) << x[i];
      else ASSERT_NE(out[i], out[i]);
  }
  for (DType dtype : {DType::kI32, DType::kU8, DType::kBool}) {
    std::vector<std::int32_t> lanes(x.size());
    cast_op(DType::kF32, dtype)({{x.data()}, {}, lanes.data(), 0, 1, x.size()});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::int64_t want = dtype == DType::kI32  ? from_double<std::int32_t>(x[i])
                                : dtype == DType::kU8 ? from_double<std::uint8_t>(x[i])
                                                      : x[i] != 0;
      ASSERT_EQ(lanes[i], want) << x[i];
    }
  }
}

}  // namespace
}  // namespace weft::cpu::tile_ops_test
