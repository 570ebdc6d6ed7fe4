// From a random word to a number of a distribution: one draw per element, no rejection. All distributions use the same
// 24 bits, so f32 and f64 programs see the same draw.
#pragma once

#include <cmath>

#include "base/below.h"
#include "base/dispatch.h"
#include "base/philox.h"
#include "program/ir.h"
#include "kernels/vmath.h"

namespace weft {

inline double deviate(std::uint32_t word, Distribution distribution, double a, double b) {
  const double bits = draw24(word);
  switch (distribution) {
    case Distribution::kUniform: return a + (b - a) * (bits * 0x1p-24);
    case Distribution::kNormal: return a + b * vmath::inverse_normal((bits + 0.5) * 0x1p-24);
    case Distribution::kTruncatedNormal: {
      const double low = vmath::normal_below(-2), high = vmath::normal_below(2);
      return a + b * vmath::inverse_normal(low + (high - low) * ((bits + 0.5) * 0x1p-24));
    }
    case Distribution::kBernoulli: return bits < std::nearbyint(a * 0x1p24) ? 1 : 0;
    case Distribution::kBits: return word;
  }
  return 0;
}

}  // namespace weft
