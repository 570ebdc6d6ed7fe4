// The few best elements of a line of f32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::cpu {

constexpr std::size_t kMostBest = 64;

struct BestArgs {
  const float* x;
  std::size_t length, k;  // k from 1 to kMostBest, at most the length
  bool ascending;
  float* values;         // k of them, best first; ties to the lower place; NaN counts as the largest
  std::int32_t* places;  // where each of them is in the line
};
void find_best(const BestArgs& args);

}  // namespace weft::cpu
