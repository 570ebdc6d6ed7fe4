// Number: a number in a program before it has a dtype. Integers of 64 bits are exact.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <ostream>
#include <string>

#include "weft/dtype.h"

namespace weft {

class Number {
 public:
  Number() = default;  // 0
  template <std::floating_point T>
  Number(T value) : real_(static_cast<double>(value)), is_exact_(false) {}
  template <std::integral T>
  Number(T value) {
    // No integer dtype holds a number beyond the range of i64.
    if (value > 0 && static_cast<std::uint64_t>(value) > std::numeric_limits<std::int64_t>::max()) {
      real_ = static_cast<double>(value);
      is_exact_ = false;
    } else {
      whole_ = static_cast<std::int64_t>(value);
    }
  }

  double real() const { return is_exact_ ? static_cast<double>(whole_) : real_; }
  bool is_whole() const;  // an integer within the range of i64
  // Only if is_whole().
  std::int64_t whole() const { return is_exact_ ? whole_ : static_cast<std::int64_t>(real_); }

  bool operator==(const Number& other) const {
    return is_exact_ && other.is_exact_ ? whole_ == other.whole_ : real() == other.real();
  }

  friend std::ostream& operator<<(std::ostream& out, const Number& number) {
    return number.is_exact_ ? out << number.whole_ : out << number.real_;
  }

 private:
  union {
    std::int64_t whole_ = 0;
    double real_;
  };
  bool is_exact_ = true;
};

// Why the dtype cannot hold the number, for example "which is not whole"; none if it can. Integer dtypes hold the
// integers of their range, bool holds 0 and 1. Floats round; they hold NaN and infinities, but no finite number that
// would become infinite.
std::optional<std::string> why_not_held(const Number& number, DType dtype);

}  // namespace weft
