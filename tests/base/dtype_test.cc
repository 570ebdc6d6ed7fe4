#include "weft/dtype.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>

#include "base/str.h"
#include "support/expect_error.h"

namespace weft::dtype_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<DType> kAll = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64, DType::kI32,
                                 DType::kI64, DType::kU32,  DType::kU8,  DType::kBool};

template <class Half>
Half from_bits(std::uint32_t bits) {
  Half half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

// Exact value of a 16-bit float of 1 sign, `exponent_bits` and the rest fraction, by the definition of the format.
double by_definition(std::uint32_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int top = (1 << exponent_bits) - 1, bias = top / 2;
  const int exponent = static_cast<int>(bits >> fraction_bits) & top;
  const int fraction = static_cast<int>(bits) & ((1 << fraction_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == top) return fraction != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

// Every one of the 65536 bit patterns means what the format says, and comes back unchanged from f32.
template <class Half>
void expect_every_pattern(int exponent_bits) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = static_cast<float>(from_bits<Half>(bits));
    const double want = by_definition(bits, exponent_bits);
    const Half back(value);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << bits;
      ASSERT_EQ(back.bits & 0x8000u, bits & 0x8000u) << "the sign of a NaN is kept";
    } else {
      ASSERT_EQ(value, want) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(back.bits, bits);
    }
  }
}

// Between every two neighbouring finite values: a little below the middle goes down, a little above goes up, the
// middle itself goes to the even one. All of these are exact in f32, denormals of f16 included.
template <class Half>
void expect_nearest_even(std::uint32_t infinity_bits) {
  for (std::uint32_t low = 0; low + 1 < infinity_bits; ++low) {
    const double below = static_cast<float>(from_bits<Half>(low));
    const double above = static_cast<float>(from_bits<Half>(low + 1));
    const float middle = static_cast<float>((below + above) / 2);
    for (float sign : {1.0f, -1.0f}) {
      const std::uint32_t mark = sign < 0 ? 0x8000 : 0;
      ASSERT_EQ(Half(sign * middle).bits, mark | (low + (low & 1))) << middle;
      ASSERT_EQ(Half(sign * std::nextafter(middle, 0.0f)).bits, mark | low) << middle;
      ASSERT_EQ(Half(sign * std::nextafter(middle, kInfinity)).bits, mark | (low + 1)) << middle;
    }
  }
}

TEST(DType, NamesAreUniqueAndReadBack) {
  std::set<std::string_view> seen;
  for (DType dtype : kAll) {
    EXPECT_EQ(dtype_of(name_of(dtype)), dtype);
    EXPECT_TRUE(seen.insert(name_of(dtype)).second) << dtype;
  }
}

TEST(DType, SizesAreThoseOfTheStorage) {
  EXPECT_EQ(size_of(DType::kF32), sizeof(float));
  EXPECT_EQ(size_of(DType::kBF16), sizeof(BF16));
  EXPECT_EQ(size_of(DType::kF16), sizeof(F16));
  EXPECT_EQ(size_of(DType::kF64), sizeof(double));
  EXPECT_EQ(size_of(DType::kI32), sizeof(std::int32_t));
  EXPECT_EQ(size_of(DType::kI64), sizeof(std::int64_t));
  EXPECT_EQ(size_of(DType::kU32), sizeof(std::uint32_t));
  EXPECT_EQ(size_of(DType::kU8), sizeof(std::uint8_t));
  EXPECT_EQ(size_of(DType::kBool), 1u);
}

TEST(DType, IsFloatOrIntegerOrBool) {
  const std::set<DType> floats = {DType::kF32, DType::kBF16, DType::kF16, DType::kF64};
  for (DType dtype : kAll) {
    EXPECT_EQ(is_float(dtype), floats.count(dtype) == 1) << dtype;
    EXPECT_EQ(is_integer(dtype), floats.count(dtype) == 0 && dtype != DType::kBool) << dtype;
  }
}

TEST(DType, PrintsItsName) { EXPECT_EQ(str(DType::kBF16, " ", DType::kBool), "bf16 bool"); }

TEST(DType, UnknownNameIsRefused) {
  EXPECT_USER_ERROR(dtype_of("f23"), "error: there is no dtype 'f23'", "where: dtype name",
                    "fix:   use one of f32, bf16, f16, f64, i32, i64, u32, u8, i8, bool");
  EXPECT_USER_ERROR(dtype_of(""), "there is no dtype ''");
  EXPECT_USER_ERROR(dtype_of("F32"), "there is no dtype 'F32'");
}

TEST(BF16, EveryPattern) { expect_every_pattern<BF16>(8); }
TEST(BF16, RoundsToNearestEven) { expect_nearest_even<BF16>(0x7f80); }

TEST(BF16, KeepsInfinityAndNan) {
  EXPECT_EQ(BF16(kInfinity).bits, 0x7f80);
  EXPECT_EQ(BF16(-kInfinity).bits, 0xff80);
  EXPECT_EQ(BF16(std::numeric_limits<float>::max()).bits, 0x7f80) << "above the largest bf16: rounds to infinity";
  EXPECT_TRUE(std::isnan(static_cast<float>(BF16(kNan))));
  // A NaN whose payload lies in the dropped bits alone must not turn into infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(BF16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BF16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(F16, EveryPattern) { expect_every_pattern<F16>(5); }
TEST(F16, RoundsToNearestEven) { expect_nearest_even<F16>(0x7c00); }

TEST(F16, OverflowsToInfinity) {
  EXPECT_EQ(F16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(F16(std::nextafter(65520.0f, 0.0f)).bits, 0x7bff);
  EXPECT_EQ(F16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(F16(-1e30f).bits, 0xfc00);
  EXPECT_EQ(F16(kInfinity).bits, 0x7c00);
}

TEST(F16, KeepsNan) {
  EXPECT_TRUE(std::isnan(static_cast<float>(F16(kNan))));
  EXPECT_TRUE(std::isnan(static_cast<float>(F16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(F16, UnderflowsToSignedZero) {
  EXPECT_EQ(F16(1e-30f).bits, 0);
  EXPECT_EQ(F16(-1e-30f).bits, 0x8000);
  EXPECT_EQ(F16(0x1p-25f).bits, 0) << "half of the smallest value goes to the even one: zero";
  EXPECT_EQ(F16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
}

}  // namespace
}  // namespace weft::dtype_test
