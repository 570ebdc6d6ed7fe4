// The windows of convolve and pool along each spatial dim.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// How a window walks along a dim: tap k of place o meets element o * stride + k * dilation - before. Elements outside
// the dim do not count.
struct WindowDim {
  std::string dim;        // of x, and of y with the places as its size
  std::string filter;     // of the filter; empty in a pool
  std::int64_t size = 1;  // taps
  std::int64_t stride = 1, dilation = 1, before = 0;
};
enum class Direction : std::uint8_t { kForward, kToInput, kToFilter };
enum class PoolKind : std::uint8_t { kMax, kSum, kWinners };

const char* name_of(Direction direction);
const char* name_of(PoolKind kind);

}  // namespace weft
