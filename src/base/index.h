// Signed numbers as positions in standard containers.
#pragma once

#include <concepts>
#include <cstddef>

namespace weft {

template <std::integral I>
constexpr std::size_t at(I index) {
  return static_cast<std::size_t>(index);
}

}  // namespace weft
