// Element types. bf16 and f16 are stored as 16 bits; arithmetic on them is in f32 and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace weft {

enum class DType : std::uint8_t { kF32, kBF16, kF16, kF64, kI32, kI64, kU32, kU8, kI8, kBool };

std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);  // "f32", "bf16", …
bool is_float(DType dtype);
bool is_integer(DType dtype);  // i32, i64, u32, u8, i8; not bool
// The dtype of that name; UserError if there is none.
DType dtype_of(std::string_view name);

inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name_of(dtype); }

struct BF16 {
  std::uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float value);  // rounds to nearest even, keeps NaN
  explicit operator float() const;
};

struct F16 {
  std::uint16_t bits = 0;
  F16() = default;
  explicit F16(float value);  // rounds to nearest even, keeps NaN, overflows to infinity
  explicit operator float() const;
};

// The dtype whose elements are stored as T: float, double, BF16, F16, std::int32_t, std::int64_t, std::uint32_t,
// std::uint8_t, std::int8_t or bool.
template <class T>
inline constexpr DType kDTypeOf = [] {
  static_assert(sizeof(T) == 0, "no dtype is stored as this type");
  return DType::kF32;
}();
template <>
inline constexpr DType kDTypeOf<float> = DType::kF32;
template <>
inline constexpr DType kDTypeOf<double> = DType::kF64;
template <>
inline constexpr DType kDTypeOf<BF16> = DType::kBF16;
template <>
inline constexpr DType kDTypeOf<F16> = DType::kF16;
template <>
inline constexpr DType kDTypeOf<std::int32_t> = DType::kI32;
template <>
inline constexpr DType kDTypeOf<std::int64_t> = DType::kI64;
template <>
inline constexpr DType kDTypeOf<std::uint32_t> = DType::kU32;
template <>
inline constexpr DType kDTypeOf<std::uint8_t> = DType::kU8;
template <>
inline constexpr DType kDTypeOf<std::int8_t> = DType::kI8;
template <>
inline constexpr DType kDTypeOf<bool> = DType::kBool;

}  // namespace weft
