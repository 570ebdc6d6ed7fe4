// From a DType to the C++ type that stores it, and conversions between stored elements and the numbers that kernels
// compute with.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "weft/dtype.h"
#include "weft/error.h"
#include "weft/number.h"

namespace weft {

struct Bool {
  std::uint8_t bits = 0;
};

// Calls f.operator()<T>() with the type that stores `dtype`.
template <class F>
decltype(auto) visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32: return f.template operator()<float>();
    case DType::kBF16: return f.template operator()<BF16>();
    case DType::kF16: return f.template operator()<F16>();
    case DType::kF64: return f.template operator()<double>();
    case DType::kI32: return f.template operator()<std::int32_t>();
    case DType::kI64: return f.template operator()<std::int64_t>();
    case DType::kU32: return f.template operator()<std::uint32_t>();
    case DType::kU8: return f.template operator()<std::uint8_t>();
    case DType::kI8: return f.template operator()<std::int8_t>();
    case DType::kBool: return f.template operator()<Bool>();
  }
  throw InternalError("a dtype outside its enum");
}

template <class T>
double to_double(T x) {
  if constexpr (std::is_same_v<T, Bool>) return x.bits ? 1 : 0;
  else if constexpr (std::is_arithmetic_v<T>) return static_cast<double>(x);
  else return static_cast<float>(x);
}

template <class T>
std::int64_t to_int64(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(x);
  else return static_cast<std::int64_t>(to_double(x));
}

// Rounds to the stored type. To integers: towards zero, clamped to the range; NaN gives 0. To bool: not zero.
template <class T>
T from_double(double x) {
  if constexpr (std::is_same_v<T, Bool>) {
    return Bool{static_cast<std::uint8_t>(x != 0)};
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(x)) return 0;
    if (x <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(x);
  } else if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return T(static_cast<float>(x));
  }
}

template <class T>
T from_int64(std::int64_t x) {
  if constexpr (std::is_same_v<T, Bool>) return Bool{static_cast<std::uint8_t>(x != 0)};
  else if constexpr (std::is_integral_v<T>) return static_cast<T>(x);
  else return from_double<T>(static_cast<double>(x));
}

// Exact if the type holds the number; otherwise like from_double.
template <class T>
T from_number(const Number& x) {
  if constexpr (std::is_integral_v<T>) {
    if (!x.is_whole()) return from_double<T>(x.real());
    using Limits = std::numeric_limits<T>;
    if (x.whole() < static_cast<std::int64_t>(Limits::min())) return Limits::min();
    if (x.whole() > static_cast<std::int64_t>(Limits::max())) return Limits::max();
    return static_cast<T>(x.whole());
  } else {
    return from_double<T>(x.real());
  }
}

// The number that a float of this dtype would hold.
inline double rounded(double x, DType dtype) {
  switch (dtype) {
    case DType::kF32: return static_cast<float>(x);
    case DType::kBF16: return static_cast<float>(BF16(static_cast<float>(x)));
    case DType::kF16: return static_cast<float>(F16(static_cast<float>(x)));
    default: return x;
  }
}

}  // namespace weft
