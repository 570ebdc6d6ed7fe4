// The steady clock in seconds.
#pragma once

#include <chrono>

namespace weft {

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace weft
