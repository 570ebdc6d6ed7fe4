// The elementary functions of vmath-inl.h over single numbers on the host: vmath::exp(x) of a double or a float.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#define WEFT_FN inline

namespace weft::vmath {

inline float fused(float x, float y, float z) { return std::fma(x, y, z); }
inline double fused(double x, double y, double z) { return std::fma(x, y, z); }
inline float rooted(float x) { return std::sqrt(x); }
inline double rooted(double x) { return std::sqrt(x); }
inline float floored(float x) { return std::floor(x); }
inline double floored(double x) { return std::floor(x); }
inline float rounded(float x) { return std::nearbyint(x); }
inline double rounded(double x) { return std::nearbyint(x); }
inline int bits_of(float x) { return std::bit_cast<int>(x); }
inline long long bits_of(double x) { return std::bit_cast<long long>(x); }
inline float from_bits(int x) { return std::bit_cast<float>(x); }
inline double from_bits(long long x) { return std::bit_cast<double>(x); }

template <class V>
constexpr bool kHasMachine = false;

#include "kernels/scalar-inl.h"
#include "kernels/vmath-inl.h"

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// The number below which a normal deviate falls with probability p, 2^-26 <= p <= 1 - 2^-26. Relative error below 1e-15.
inline double inverse_normal(double p) {
  const double q = p - 0.5;
  return q > -0.425 && q < 0.425 ? inverse_normal_near(p) : inverse_normal_far(p);
}

// The probability of a normal deviate below x.
inline double normal_below(double x) { return 0.5 + 0.5 * erf(x * 0.70710678118654752440); }

}  // namespace weft::vmath

#undef WEFT_FN
