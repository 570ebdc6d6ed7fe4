// bf16 in vectors, compiled for each of Highway's targets: values are stored in 16 bits and computed with in f32.
#if defined(WEFT_BASE_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_BASE_BF16_INL_H_
#undef WEFT_BASE_BF16_INL_H_
#else
#define WEFT_BASE_BF16_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::bf16::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using F = hn::ScalableTag<float>;
using Bits = hn::Rebind<std::uint16_t, F>;

HWY_INLINE hn::Vec<F> widen(hn::Vec<Bits> bits) {
  return hn::BitCast(F(), hn::ShiftLeft<16>(hn::PromoteTo(hn::RebindToUnsigned<F>(), bits)));
}

// The nearest bf16, ties to even, in the upper half of each lane. A NaN stays NaN, even if its payload is in the lower
// half.
HWY_INLINE hn::Vec<F> nearest(hn::Vec<F> v) {
  const hn::RebindToUnsigned<F> u;
  const auto word = hn::BitCast(u, v), odd = hn::And(hn::ShiftRight<16>(word), hn::Set(u, 1));
  const auto rounded = hn::Add(word, hn::Add(hn::Set(u, 0x7fff), odd));
  const auto quiet = hn::Or(word, hn::Set(u, 0x400000));
  const auto chosen = hn::IfThenElse(hn::RebindMask(u, hn::IsNaN(v)), quiet, rounded);
  return hn::BitCast(F(), hn::And(chosen, hn::Set(u, 0xffff0000u)));
}

HWY_INLINE hn::Vec<Bits> narrow(hn::Vec<F> v) {
  const hn::RebindToUnsigned<F> u;
  return hn::DemoteTo(Bits(), hn::BitCast(hn::RebindToSigned<F>(), hn::ShiftRight<16>(hn::BitCast(u, nearest(v)))));
}

}  // namespace weft::bf16::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
