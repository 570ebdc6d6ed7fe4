// The largest number of a stored type below a number: the end of a half-open range of random numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dispatch.h"

namespace weft {

template <class T>
double below(double x) {
  T y = from_double<T>(x);
  if (to_double(y) < x) return to_double(y);
  if constexpr (std::is_floating_point_v<T>) y = std::nextafter(y, -std::numeric_limits<T>::infinity());
  else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>)
    y.bits = to_double(y) > 0   ? static_cast<std::uint16_t>(y.bits - 1)
             : to_double(y) < 0 ? static_cast<std::uint16_t>(y.bits + 1)
                                : std::uint16_t{0x8001};
  return to_double(y);
}

}  // namespace weft
