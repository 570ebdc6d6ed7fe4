#include "weft/number.h"

#include <cmath>

#include "base/dispatch.h"
#include "base/str.h"

namespace weft {

namespace {

// [-2^63, 2^63): the range in which a double converts to an i64.
bool in_range(double x) { return x >= -0x1p63 && x < 0x1p63; }

}  // namespace

bool Number::is_whole() const { return is_exact_ || (in_range(real_) && real_ == std::trunc(real_)); }

std::optional<std::string> why_not_held(const Number& number, DType dtype) {
  if (is_float(dtype)) {
    if (!std::isfinite(number.real()) || std::isfinite(rounded(number.real(), dtype))) return std::nullopt;
    return str("which is too large for ", dtype);
  }
  const bool fraction = std::isfinite(number.real()) && number.real() != std::trunc(number.real());
  if (fraction) return "which is not whole";
  const auto [least, most] = visit_dtype(dtype, []<class T>() {
    if constexpr (std::is_integral_v<T>)
      return std::pair<std::int64_t, std::int64_t>(std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
    else return std::pair<std::int64_t, std::int64_t>(0, 1);
  });
  if (number.is_whole() && number.whole() >= least && number.whole() <= most) return std::nullopt;
  return str("which is not within ", least, " to ", most);
}

}  // namespace weft
