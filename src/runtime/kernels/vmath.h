// Elementary functions of our own: the same polynomials on every machine, so that backends agree to the bit. Only
// + - * /, sqrt, fma, rounding and bit patterns inside. Bounds are over doubles, against the exact value.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace weft::vmath {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;

// 2^n for n in [-2044, 2046], by two factors so that results may be subnormal.
inline double scaled(double x, int n) {
  const auto power = [](int k) { return std::bit_cast<double>(static_cast<std::uint64_t>(k + 1023) << 52); };
  const int half = n / 2;
  return x * power(half) * power(n - half);
}

// exp(r) - 1 - r for |r| <= ln 2 / 2: the Taylor series to r^13, which ends below 2^-56.
inline double exp_tail(double r) {
  double p = 1.0 / 6227020800.0;
  constexpr double kFactorials[] = {479001600.0, 39916800.0, 3628800.0, 362880.0, 40320.0, 5040.0,
                                    720.0,       120.0,      24.0,      6.0,      2.0};
  for (double factorial : kFactorials) p = std::fma(p, r, 1.0 / factorial);
  return p * r * r;
}

// Relative error below 2e-16 * 2; subnormal results lose their own low bits.
inline double exp(double x) {
  if (!(x < 709.8)) return x != x ? x : kInfinity;
  if (x < -745.2) return 0;
  const double n = std::nearbyint(x * 1.44269504088896340736);
  const double r = std::fma(-n, kLn2Low, std::fma(-n, kLn2High, x));
  return scaled(1 + (r + exp_tail(r)), static_cast<int>(n));
}

// Relative error below 1e-15.
inline double expm1(double x) {
  if (x > -0.34 && x < 0.34) return x == 0 ? x : x + exp_tail(x);
  return exp(x) - 1;
}

// log((1 + f) ) by the series of atanh(s), s = f / (2 + f), |s| <= 0.172: terms to s^23.
inline double log_near_one(double f) {
  const double s = f / (2 + f), z = s * s;
  double p = 1.0 / 23;
  for (int k = 21; k >= 3; k -= 2) p = std::fma(p, z, 1.0 / k);
  const double hfsq = 0.5 * f * f;
  return f - (hfsq - s * (hfsq + 2 * z * p));
}

// Relative error below 4e-16 but for cancellation near 1, where it is below 1e-15.
inline double log(double x) {
  if (!(x > 0)) return x == 0 ? -kInfinity : kNaN;
  if (x == kInfinity) return x;
  int extra = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 0x1p54;
    extra = -54;
  }
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int n = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 1.41421356237309504880) {
    m *= 0.5;
    ++n;
  }
  n += extra;
  return n * kLn2High + (log_near_one(m - 1) + n * kLn2Low);
}

// Relative error below 1e-15: log(u) corrected for the rounding of u = 1 + x.
inline double log1p(double x) {
  if (x > -0.25 && x < 0.4) return log_near_one(x);
  const double u = 1 + x;
  if (u == kInfinity || !(u > 0)) return log(u);
  return log(u) + (x - (u - 1)) / u;
}

namespace detail {

// sin and cos of r in [-pi/4, pi/4]: Taylor to r^17 and r^18.
inline double sin_kernel(double r) {
  const double z = r * r;
  double p = 1.0 / 355687428096000.0;
  constexpr double kFactorials[] = {-1307674368000.0, 6227020800.0, -39916800.0, 362880.0, -5040.0, 120.0, -6.0};
  for (double factorial : kFactorials) p = std::fma(p, z, 1.0 / factorial);
  return std::fma(p * z, r, r);
}
inline double cos_kernel(double r) {
  const double z = r * r;
  double p = -1.0 / 6402373705728000.0;
  constexpr double kFactorials[] = {20922789888000.0, -87178291200.0, 479001600.0, -3628800.0, 40320.0, -720.0, 24.0};
  for (double factorial : kFactorials) p = std::fma(p, z, 1.0 / factorial);
  return std::fma(p * z, z, 1 - 0.5 * z);
}

// x = n pi/2 + r, with pi/2 in three parts: r is good to 1e-16 for |x| < 1e12. Returns n mod 4. Beyond 1e15 no digit of
// r is left; it is kept in range, so that the polynomials stay bounded.
inline int reduce_quarter(double x, double& r) {
  const double n = std::nearbyint(x * 0.636619772367581343076);
  r = std::fma(-n, 1.57079632679489655800e+00, x);
  r = std::fma(-n, 6.12323399573676603587e-17, r);
  r = std::fma(-n, -1.49738490485916983294e-33, r);
  constexpr double kEighth = 0.78539816339744830962;  // pi/4
  r = r > kEighth ? kEighth : r < -kEighth ? -kEighth : r;
  const double quarter = n - 4 * std::floor(n / 4);
  return static_cast<int>(quarter);
}

}  // namespace detail

// Relative error below 1e-15 for |x| < 1e12; always within [-1, 1].
inline double sin(double x) {
  if (!(x > -kInfinity && x < kInfinity)) return kNaN;
  double r;
  switch (detail::reduce_quarter(x, r)) {
    case 0: return detail::sin_kernel(r);
    case 1: return detail::cos_kernel(r);
    case 2: return -detail::sin_kernel(r);
    default: return -detail::cos_kernel(r);
  }
}

inline double cos(double x) {
  if (!(x > -kInfinity && x < kInfinity)) return kNaN;
  double r;
  switch (detail::reduce_quarter(x, r)) {
    case 0: return detail::cos_kernel(r);
    case 1: return -detail::sin_kernel(r);
    case 2: return -detail::cos_kernel(r);
    default: return detail::sin_kernel(r);
  }
}

// Relative error below 2e-15: expm1(2x) / (expm1(2x) + 2).
inline double tanh(double x) {
  if (x > 20) return 1;
  if (x < -20) return -1;
  const double e = expm1(2 * x);
  return e / (e + 2);
}

// 1 / (1 + exp(-x)), without overflow.
inline double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + exp(-x));
  const double e = exp(x);
  return e / (1 + e);
}

// log(1 + exp(x)), without overflow.
inline double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x)); }

// 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!: all terms of one sign. Relative error below 3e-15.
inline double erf(double x) {
  if (x != x) return x;
  if (x > 6) return 1;
  if (x < -6) return -1;
  const double z = x * x;
  double term = x, sum = x;
  for (int n = 1; n < 120 && term != 0; ++n) {
    term *= 2 * z / (2 * n + 1);
    if (sum + term == sum) break;
    sum += term;
  }
  const double y = 1.12837916709551257390 * exp(-z) * sum;
  return y > 1 ? 1 : y < -1 ? -1 : y;
}

// The coefficients of Wichura's AS 241: near the middle (above and below the line), and far from it.
constexpr double kNormalA[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr double kNormalB[8] = {1,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
constexpr double kNormalC[8] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr double kNormalD[8] = {1,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};

// The number below which a normal deviate falls with probability p, 2^-26 <= p <= 1 - 2^-26. Wichura's AS 241:
// relative error below 1e-15.
inline double inverse_normal(double p) {
  const auto ratio = [](double r, const double(&a)[8], const double(&b)[8]) {
    double above = a[7], below = b[7];
    for (int i = 6; i >= 0; --i) {
      above = above * r + a[i];
      below = below * r + b[i];
    }
    return above / below;
  };
  const double q = p - 0.5;
  if (q > -0.425 && q < 0.425) return q * ratio(0.180625 - q * q, kNormalA, kNormalB);
  const double tail = std::sqrt(-log(q < 0 ? p : 1 - p));
  const double x = ratio(tail - 1.6, kNormalC, kNormalD);
  return q < 0 ? -x : x;
}

// The probability of a normal deviate below x.
inline double normal_below(double x) { return 0.5 + 0.5 * erf(x * 0.70710678118654752440); }

}  // namespace weft::vmath
