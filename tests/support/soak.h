// How long soak tests run: WEFT_SOAK_PERCENT of what they do otherwise, 100 unless it is set.
#pragma once

#include <algorithm>
#include <cstdlib>

namespace weft::test {

inline int soak_count(int all) {
  const char* percent = std::getenv("WEFT_SOAK_PERCENT");
  return percent ? std::max(1, static_cast<int>(all / 100.0 * std::clamp(std::atoi(percent), 1, 100))) : all;
}

}  // namespace weft::test
