// The ways of reducing many elements to one. On bool, max is "any" and min is "all".
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

namespace weft {

enum class Reduce : std::uint8_t { kSum, kMax, kMin, kProduct };

constexpr std::string_view name_of(Reduce how) {
  switch (how) {
    case Reduce::kSum: return "sum";
    case Reduce::kMax: return "max";
    case Reduce::kMin: return "min";
    case Reduce::kProduct: return "product";
  }
  return "?";
}

inline std::ostream& operator<<(std::ostream& out, Reduce how) { return out << name_of(how); }

}  // namespace weft
