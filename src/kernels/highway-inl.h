// The operations of kernels/scalar-inl.h over Highway vectors of f32, f64, i32 and i64, and the elementary functions over
// them: vmath::HWY_NAMESPACE::exp(x). Compiled once per target, inside foreach_target.
#include "hwy/highway.h"

#if defined(WEFT_KERNELS_HIGHWAY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_KERNELS_HIGHWAY_INL_H_
#undef WEFT_KERNELS_HIGHWAY_INL_H_
#else
#define WEFT_KERNELS_HIGHWAY_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::vmath::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#define WEFT_FN HWY_INLINE

template <class V>
constexpr bool kIsWhole = !hwy::IsFloat<hn::TFromV<V>>();
template <class V>
constexpr bool kHasMachine = false;
template <class V>
constexpr bool kIsF32 = hwy::IsFloat<hn::TFromV<V>>() && sizeof(hn::TFromV<V>) == 4;

template <class V, class C>
WEFT_FN V set(C c) {
  return hn::Set(hn::DFromV<V>(), static_cast<hn::TFromV<V>>(c));
}

template <class V>
WEFT_FN auto less(V x, V y) {
  return hn::Lt(x, y);
}
template <class V>
WEFT_FN auto less_equal(V x, V y) {
  if constexpr (kIsWhole<V>) return hn::Not(hn::Gt(x, y));
  else return hn::Le(x, y);
}
template <class V>
WEFT_FN auto equal(V x, V y) {
  return hn::Eq(x, y);
}
template <class M>
WEFT_FN M both(M a, M b) {
  return hn::And(a, b);
}
template <class M>
WEFT_FN M either(M a, M b) {
  return hn::Or(a, b);
}
template <class M>
WEFT_FN M opposite(M a) {
  return hn::Not(a);
}
template <class M, class V>
WEFT_FN V choose(M condition, V yes, V no) {
  return hn::IfThenElse(condition, yes, no);
}

// x86's min and max give their second operand if either is NaN, or if they are equal.
template <class V>
WEFT_FN V smaller(V x, V y) {
  return hn::Min(x, y);
}
template <class V>
WEFT_FN V larger(V x, V y) {
  return hn::Max(x, y);
}
template <class V>
WEFT_FN V nan_or(V x, V otherwise) {
  if constexpr (kIsWhole<V>) return otherwise;
  else return hn::IfThenElse(hn::IsNaN(x), x, otherwise);
}

// ---- floats

template <class V>
using Wholes = hn::Vec<hn::RebindToSigned<hn::DFromV<V>>>;

template <class V>
WEFT_FN Wholes<V> bits(V x) {
  return hn::BitCast(hn::RebindToSigned<hn::DFromV<V>>(), x);
}
template <class V>
WEFT_FN V as_float(Wholes<V> x) {
  return hn::BitCast(hn::DFromV<V>(), x);
}
template <class V>
WEFT_FN V to_float(Wholes<V> x) {
  if constexpr (kIsF32<V>) return hn::ConvertTo(hn::DFromV<V>(), x);
  else return as_float<V>(x + bits(set<V>(0x1.8p52))) - set<V>(0x1.8p52);  // AVX2 converts no integers of 64 bits
}
template <int kPlaces, class W>
WEFT_FN W shift_left(W x) {
  return hn::ShiftLeft<kPlaces>(x);
}
template <int kPlaces, class W>
WEFT_FN W shift_right(W x) {
  return hn::ShiftRight<kPlaces>(x);
}

template <class V>
WEFT_FN V fma(V x, V y, V z) {
  return hn::MulAdd(x, y, z);
}
template <class V>
WEFT_FN V nfma(V x, V y, V z) {
  return hn::NegMulAdd(x, y, z);
}
template <class V>
WEFT_FN V sqrt(V x) {
  return hn::Sqrt(x);
}
template <class V>
WEFT_FN V round(V x) {
  return hn::Round(x);
}
template <class V>
WEFT_FN V floor(V x) {
  if constexpr (kIsWhole<V>) return x;
  else return hn::Floor(x);
}
template <class V>
WEFT_FN V minus(V x) {
  return hn::Neg(x);
}
template <class V>
WEFT_FN V magnitude(V x) {
  return hn::Abs(x);
}
template <class V>
WEFT_FN V with_sign(V x, V sign) {
  return hn::CopySign(x, sign);
}

// The lanes of x, i32 or f32, as doubles: a half of them at a time.
template <class F, class V, class... More>
WEFT_FN V in_double(F f, V x, More... more) {
  if constexpr (sizeof(hn::TFromV<V>) == 8) {
    return f(x, more...);
  } else {
    const hn::DFromV<V> d;
    const hn::Half<decltype(d)> half;
    const hn::Rebind<double, decltype(half)> wide;
    const auto low = f(hn::PromoteTo(wide, hn::LowerHalf(half, x)), hn::PromoteTo(wide, hn::LowerHalf(half, more))...);
    const auto high = f(hn::PromoteTo(wide, hn::UpperHalf(half, x)), hn::PromoteTo(wide, hn::UpperHalf(half, more))...);
    return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
  }
}

// ---- integers

struct DoubleQuotient {
  template <class V>
  WEFT_FN V operator()(V x, V y) const {
    return hn::Floor(hn::Div(x, y));
  }
};
// Of i32: the floor of the quotient in double is the right one.
template <class V>
WEFT_FN V floor_quotient(V x, V y) {
  return in_double(DoubleQuotient{}, x, y);
}

#include "kernels/vmath-inl.h"

#undef WEFT_FN

}  // namespace weft::vmath::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
