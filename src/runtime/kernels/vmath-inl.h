// The elementary functions of vmath.h over Highway vectors of f32: compiled once per target, inside foreach_target.
// Bounds are in units in the last place (ulp) of the f32 result, over all floats, against the function of vmath.h.
// Only + - * /, sqrt, fma, rounding and bit patterns inside, so that all targets give the same bits.
//
// x86's min and max give their second operand if either is NaN: where the second is the argument, NaN goes through.
#include "hwy/highway.h"

#if defined(WEFT_RUNTIME_KERNELS_VMATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_RUNTIME_KERNELS_VMATH_INL_H_
#undef WEFT_RUNTIME_KERNELS_VMATH_INL_H_
#else
#define WEFT_RUNTIME_KERNELS_VMATH_INL_H_
#endif

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace weft::vmath::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr float kInf = std::numeric_limits<float>::infinity();

// c[0] + c[1] x + c[2] x^2 + …, by Horner's rule.
template <class D, class V, class T, std::size_t N>
HWY_INLINE V polynomial(D d, V x, const T (&c)[N]) {
  V p = hn::Set(d, c[N - 1]);
  for (std::size_t k = N - 1; k-- > 0;) p = hn::MulAdd(p, x, hn::Set(d, c[k]));
  return p;
}

// ---- exp

// (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2; error of r^2 times it below 4e-9.
constexpr float kExpTail[] = {5.000000095e-01f, 1.666651804e-01f, 4.166620412e-02f, 8.369005473e-03f, 1.395065589e-03f};
constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kLn2High = 0.693147182464599609375f, kLn2Low = -1.90465429995776804525e-09f;

// x = n ln 2 + r. Returns exp(r) - 1 - r.
template <class D, class V, class VI>
HWY_INLINE V exp_parts(D d, V x, VI& n, V& r) {
  const hn::RebindToSigned<D> di;
  const V shift = hn::Set(d, 0x1.8p23f);  // its last place is 1: adding it rounds, and leaves n in the low bits
  const V shifted = hn::MulAdd(x, hn::Set(d, kLog2E), shift);
  n = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, shift));
  const V f = hn::Sub(shifted, shift);
  r = hn::NegMulAdd(f, hn::Set(d, kLn2Low), hn::NegMulAdd(f, hn::Set(d, kLn2High), x));
  return hn::Mul(hn::Mul(r, r), polynomial(d, r, kExpTail));
}

// 2^n for n in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> power_of_two(D d, VI n) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// 1.02 ulp; subnormal results lose their own low bits.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp(D d, V x) {
  const hn::RebindToSigned<D> di;
  x = hn::Max(hn::Set(d, -104.0f), hn::Min(hn::Set(d, 89.0f), x));
  hn::Vec<decltype(di)> n;
  V r;
  const V tail = exp_parts(d, x, n, r);
  const V p = hn::Add(hn::Set(d, 1.0f), hn::Add(r, tail));
  const auto half = hn::ShiftRight<1>(n);
  return hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, hn::Sub(n, half)));
}

// 2 ulp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V expm1(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V y = hn::Max(hn::Set(d, -20.0f), hn::Min(hn::Set(d, 89.0f), x));
  hn::Vec<decltype(di)> n;
  V r;
  const V tail = exp_parts(d, y, n, r);
  // 2 (2^(n-1) (r + tail) + 2^(n-1) - 1/2): n may be 128.
  const V scale = power_of_two(d, hn::Sub(n, hn::Set(di, 1)));
  const V half = hn::MulAdd(scale, hn::Add(r, tail), hn::Sub(scale, hn::Set(d, 0.5f)));
  const auto tiny = hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f));
  return hn::IfThenElse(tiny, x, hn::Add(half, half));
}

// ---- log

// (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2); error of f^2 times it below 1e-9.
constexpr float kLogTail[] = {3.333331057e-01f,  -2.499998672e-01f, 2.000222038e-01f,
                              -1.666923983e-01f, 1.421874829e-01f,  -1.238458652e-01f,
                              1.187268189e-01f,  -1.178833181e-01f, 6.914043284e-02f};

// n ln 2 + log(1 + f).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_of_parts(D d, V n, V f) {
  const V z = hn::Mul(f, f);
  V y = hn::Mul(hn::Mul(f, z), polynomial(d, f, kLogTail));
  y = hn::MulAdd(n, hn::Set(d, -2.12194440e-4f), y);
  y = hn::NegMulAdd(hn::Set(d, 0.5f), z, y);
  return hn::MulAdd(n, hn::Set(d, 0.693359375f), hn::Add(f, y));
}

// x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for normal x above 0.
template <class D, class V, class VI>
HWY_INLINE V log_parts(D d, V x, VI& n) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  n = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  return hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(n))), hn::Set(d, 1.0f));
}

// What log gives outside of the positive numbers, and at infinity.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V with_log_ends(D d, V x, V y) {
  const V zero = hn::Zero(d), inf = hn::Set(d, kInf);
  const V outside =
      hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -kInf), hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
  return hn::IfThenElse(hn::Gt(x, zero), hn::IfThenElse(hn::Eq(x, inf), inf, y), outside);
}

// 1 ulp.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log(D d, V x) {
  const auto subnormal = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p25f)), x);
  hn::Vec<hn::RebindToSigned<D>> k;
  const V f = log_parts(d, normal, k);
  const V n = hn::Sub(hn::ConvertTo(d, k), hn::IfThenElseZero(subnormal, hn::Set(d, 25.0f)));
  return with_log_ends(d, x, log_of_parts(d, n, f));
}

// 2 ulp: u = 1 + x, and what its rounding lost is put back.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V log1p(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(one, x);
  const V lost = hn::IfThenElse(hn::Gt(x, one), hn::Sub(one, hn::Sub(u, x)), hn::Sub(x, hn::Sub(u, one)));
  hn::Vec<hn::RebindToSigned<D>> k;
  V f = log_parts(d, u, k);
  const V n = hn::ConvertTo(d, k);
  const hn::RebindToSigned<D> di;
  const auto down = hn::Neg(hn::Min(k, hn::Set(di, 100)));  // beyond that nothing was lost that shows
  f = hn::MulAdd(lost, power_of_two(d, down), f);
  const V y = with_log_ends(d, u, log_of_parts(d, n, f));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)), x, y);
}

// ---- through exp and log

// 2 ulp: a polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  constexpr float kTail[] = {-3.333333091e-01f, 1.333320991e-01f,  -5.394721589e-02f,
                             2.170300661e-02f,  -8.182727326e-03f, 2.147554049e-03f};
  const V one = hn::Set(d, 1.0f), a = hn::Abs(x), z = hn::Mul(x, x);
  const V near = hn::MulAdd(hn::Mul(x, z), polynomial(d, z, kTail), x);
  const V e = exp(d, hn::Add(a, a));
  const V far = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), near, far), x);
}

// 2 ulp: a polynomial near 0, 1 - exp(-t (1 + g(t))) elsewhere.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V erf(D d, V x) {
  constexpr float kNear[] = {1.283791666e-01f, -3.761263352e-01f, 1.128369123e-01f, -2.685912006e-02f,
                             5.200260771e-03f, -8.133216086e-04f, 8.327489748e-05f};
  constexpr float kFar[] = {1.285517475e-01f, 6.356252726e-01f,  1.052627002e-01f,  -2.267413883e-02f,
                            2.930157847e-03f, -4.958682550e-05f, -4.558117328e-05f, 4.938213410e-06f};
  const V a = hn::Abs(x);
  const V near = hn::MulAdd(x, polynomial(d, hn::Mul(x, x), kNear), x);
  const V t = hn::Min(hn::Set(d, 4.0f), a);
  const V far = hn::Sub(hn::Set(d, 1.0f), exp(d, hn::Neg(hn::MulAdd(t, polynomial(d, t, kFar), t))));
  return hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.93f)), near, hn::CopySign(far, x));
}

// 3 ulp: 1 / (1 + exp(-x)), without overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f), e = exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

// 3 ulp: log(1 + exp(x)), without overflow.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus(D d, V x) {
  return hn::Add(hn::Max(hn::Zero(d), x), log1p(d, exp(d, hn::Neg(hn::Abs(x)))));
}

// ---- in double, where f32 would lose too much on the way

// f of the elements as doubles, rounded to f32.
template <class D, class F, class... V>
HWY_INLINE hn::Vec<D> in_double(D d, const F& f, V... x) {
  const hn::Half<D> half;
  const hn::Rebind<double, hn::Half<D>> wide;
  const auto low = hn::DemoteTo(half, f(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x))...));
  const auto high = hn::DemoteTo(half, f(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x))...));
  return hn::Combine(d, high, low);
}

// As vmath::exp of doubles.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V wide_exp(D d, V x) {
  constexpr double kTail[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                              1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                              1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
  x = hn::Max(hn::Set(d, -745.2), hn::Min(hn::Set(d, 709.8), x));
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504088896340736)));
  const V r = hn::NegMulAdd(n, hn::Set(d, 1.90821492927058770002e-10),
                            hn::NegMulAdd(n, hn::Set(d, 6.93147180369123816490e-01), x));
  const V p = hn::Add(hn::Set(d, 1.0), hn::MulAdd(hn::Mul(r, r), polynomial(d, r, kTail), r));
  const hn::RebindToUnsigned<D> du;
  const auto power = [&](V k) HWY_ATTR {  // the low bits of 2^52 + k + 1023 are the exponent
    return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, hn::Add(k, hn::Set(d, 0x1p52 + 1023)))));
  };
  const V half = hn::Floor(hn::Mul(n, hn::Set(d, 0.5)));
  return hn::Mul(hn::Mul(p, power(half)), power(hn::Sub(n, half)));
}

// As vmath::log of doubles that are not subnormal.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V wide_log(D d, V x) {
  constexpr double kSeries[] = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13,
                                1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23};
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, 1.0), half = hn::Set(d, 0.5);
  const auto bits = hn::BitCast(du, x);
  const auto exponent = hn::Or(hn::ShiftRight<52>(bits), hn::BitCast(du, hn::Set(d, 0x1p52)));
  V n = hn::Sub(hn::BitCast(d, exponent), hn::Set(d, 0x1p52 + 1023));
  V m = hn::BitCast(d, hn::Or(hn::And(bits, hn::Set(du, 0x000fffffffffffffu)), hn::BitCast(du, one)));
  const auto large = hn::Gt(m, hn::Set(d, 1.41421356237309504880));
  m = hn::IfThenElse(large, hn::Mul(m, half), m);
  n = hn::Add(n, hn::IfThenElseZero(large, one));
  const V f = hn::Sub(m, one), s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f)), z = hn::Mul(s, s);
  const V hfsq = hn::Mul(half, hn::Mul(f, f));
  const V series = hn::Mul(hn::Add(z, z), polynomial(d, z, kSeries));
  const V y = hn::Sub(f, hn::Sub(hfsq, hn::Mul(s, hn::Add(hfsq, series))));
  const V sum = hn::Add(hn::Mul(n, hn::Set(d, 6.93147180369123816490e-01)),
                        hn::Add(y, hn::Mul(n, hn::Set(d, 1.90821492927058770002e-10))));
  const V inf = hn::Set(d, std::numeric_limits<double>::infinity());
  const V outside =
      hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(inf), hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::IfThenElse(hn::Eq(x, inf), inf, sum), outside);
}

// sin of x + quarters pi / 2, as vmath::sin of doubles.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V wide_sin(D d, V x, double quarters) {
  constexpr double kSin[] = {-1.0 / 6,
                             1.0 / 120,
                             -1.0 / 5040,
                             1.0 / 362880,
                             -1.0 / 39916800,
                             1.0 / 6227020800.0,
                             -1.0 / 1307674368000.0,
                             1.0 / 355687428096000.0};
  constexpr double kCos[] = {1.0 / 24,
                             -1.0 / 720,
                             1.0 / 40320,
                             -1.0 / 3628800,
                             1.0 / 479001600,
                             -1.0 / 87178291200.0,
                             1.0 / 20922789888000.0,
                             -1.0 / 6402373705728000.0};
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 0.636619772367581343076)));
  V r = hn::NegMulAdd(n, hn::Set(d, 1.57079632679489655800e+00), x);
  r = hn::NegMulAdd(n, hn::Set(d, 6.12323399573676603587e-17), r);
  r = hn::NegMulAdd(n, hn::Set(d, -1.49738490485916983294e-33), r);
  const V most = hn::Set(d, 0.78539816339744830962);
  r = hn::Max(hn::Neg(most), hn::Min(most, r));
  const V four = hn::Set(d, 4.0);
  const V whole = hn::Sub(n, hn::Mul(four, hn::Floor(hn::Div(n, four))));
  const V turned = hn::Add(whole, hn::Set(d, quarters));
  const V quarter = hn::IfThenElse(hn::Ge(turned, four), hn::Sub(turned, four), turned);
  const V z = hn::Mul(r, r), one = hn::Set(d, 1.0);
  const V sine = hn::MulAdd(hn::Mul(polynomial(d, z, kSin), z), r, r);
  const V cosine = hn::MulAdd(hn::Mul(polynomial(d, z, kCos), z), z, hn::NegMulAdd(hn::Set(d, 0.5), z, one));
  const auto odd = hn::Or(hn::Eq(quarter, one), hn::Eq(quarter, hn::Set(d, 3.0)));
  const V y = hn::IfThenElse(odd, cosine, sine);
  const V turned_y = hn::IfThenElse(hn::Ge(quarter, hn::Set(d, 2.0)), hn::Neg(y), y);
  const auto finite = hn::Lt(hn::Abs(x), hn::Set(d, std::numeric_limits<double>::infinity()));
  return hn::IfThenElse(finite, turned_y, hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
}

// 1 ulp, as all below.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sin(D d, V x) {
  return in_double(
      d, [](auto w, auto v) HWY_ATTR { return wide_sin(w, v, 0); }, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V cos(D d, V x) {
  return in_double(
      d, [](auto w, auto v) HWY_ATTR { return wide_sin(w, v, 1); }, x);
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V pow(D d, V x, V y) {
  return in_double(
      d, [](auto w, auto a, auto b) HWY_ATTR { return wide_exp(w, hn::Mul(b, wide_log(w, a))); }, x, y);
}

}  // namespace weft::vmath::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
