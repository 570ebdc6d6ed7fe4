#include "weft/dtype.h"

#include <array>
#include <bit>
#include <cmath>

#include "base/str.h"
#include "weft/error.h"

namespace weft {

namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Row, 10> kRows = {{{DType::kF32, "f32", 4},
                                       {DType::kBF16, "bf16", 2},
                                       {DType::kF16, "f16", 2},
                                       {DType::kF64, "f64", 8},
                                       {DType::kI32, "i32", 4},
                                       {DType::kI64, "i64", 8},
                                       {DType::kU32, "u32", 4},
                                       {DType::kU8, "u8", 1},
                                       {DType::kI8, "i8", 1},
                                       {DType::kBool, "bool", 1}}};

const Row& row_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) { return row_of(dtype).bytes; }
std::string_view name_of(DType dtype) { return row_of(dtype).name; }

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16 || dtype == DType::kF64;
}

bool is_integer(DType dtype) { return !is_float(dtype) && dtype != DType::kBool; }

DType dtype_of(std::string_view name) {
  std::vector<std::string> known;
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
    known.emplace_back(row.name);
  }
  throw UserError({.code = "dtype.unknown",
                   .what = str("there is no dtype '", name, "'"),
                   .where = "dtype name",
                   .fix = str("use one of ", join(known, ", "))});
}

BF16::BF16(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<std::uint16_t>((word >> 16) | 0x40);
    return;
  }
  bits = static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

BF16::operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

F16::F16(float value) {
  const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>((word >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    bits = sign | 0x7e00;
  } else if (magnitude >= 65520.0f) {  // half way to the next value after the largest, 65504
    bits = sign | 0x7c00;
  } else if (magnitude < 0x1p-14f) {  // below the normal range: multiples of 2^-24
    bits = sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24f));
  } else {
    const std::uint32_t rounded = (word & 0x7fffffff) + 0xfff + ((word >> 13) & 1);
    bits = sign | static_cast<std::uint16_t>((rounded - (112u << 23)) >> 13);
  }
}

F16::operator float() const {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 31, fraction = bits & 0x3ff;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | (fraction << 13));
  if (exponent == 0) return std::copysign(static_cast<float>(fraction) * 0x1p-24f, std::bit_cast<float>(sign | 1));
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

}  // namespace weft
