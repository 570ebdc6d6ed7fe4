// Loops over tiles of f32 or i32 vectors, for every target of foreach_target.
#include "hwy/highway.h"
#include "runtime/cpu/tile_ops.h"

#if defined(WEFT_RUNTIME_CPU_TILE_LOOPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_RUNTIME_CPU_TILE_LOOPS_INL_H_
#undef WEFT_RUNTIME_CPU_TILE_LOOPS_INL_H_
#else
#define WEFT_RUNTIME_CPU_TILE_LOOPS_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Calls load(i, mask or none) and stores: whole vectors, then one masked.
template <class D, class Whole, class Tail>
HWY_INLINE void each_vector(D d, std::size_t cols, const Whole& whole, const Tail& tail) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= cols; i += lanes) whole(i);
  if (i < cols) tail(i, hn::FirstN(d, cols - i));
}

// out = f(x).
template <class In, class Out, class F>
void unary_loop(const TileArgs& args) {
  const hn::ScalableTag<In> d;
  const hn::ScalableTag<Out> dout;
  const F f;
  for (std::size_t row = 0; row < args.rows; ++row) {
    const In* x = static_cast<const In*>(args.in[0]) + static_cast<std::ptrdiff_t>(row) * args.in_stride[0];
    Out* out = static_cast<Out*>(args.out) + static_cast<std::ptrdiff_t>(row) * args.out_stride;
    each_vector(
        d, args.cols, [&](std::size_t i) HWY_ATTR { hn::StoreU(f(d, hn::LoadU(d, x + i)), dout, out + i); },
        [&](std::size_t i, auto mask) HWY_ATTR {
          hn::BlendedStore(f(d, hn::MaskedLoad(mask, d, x + i)), hn::RebindMask(dout, mask), dout, out + i);
        });
  }
}

// out = f(x, y); one of them may be a number per row.
template <class In, class Out, class F, Forms kForms>
void binary_loop(const TileArgs& args) {
  const hn::ScalableTag<In> d;
  const hn::ScalableTag<Out> dout;
  using V = hn::Vec<decltype(d)>;
  const F f;
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const In* x = static_cast<const In*>(args.in[0]) + r * args.in_stride[0];
    const In* y = static_cast<const In*>(args.in[1]) + r * args.in_stride[1];
    Out* out = static_cast<Out*>(args.out) + r * args.out_stride;
    const V x_of_row = hn::Set(d, *x), y_of_row = hn::Set(d, *y);
    each_vector(
        d, args.cols,
        [&](std::size_t i) HWY_ATTR {
          const V a = kForms == Forms::kFirstPerRow ? x_of_row : hn::LoadU(d, x + i);
          const V b = kForms == Forms::kSecondPerRow ? y_of_row : hn::LoadU(d, y + i);
          hn::StoreU(f(d, a, b), dout, out + i);
        },
        [&](std::size_t i, auto mask) HWY_ATTR {
          const V a = kForms == Forms::kFirstPerRow ? x_of_row : hn::MaskedLoad(mask, d, x + i);
          const V b = kForms == Forms::kSecondPerRow ? y_of_row : hn::MaskedLoad(mask, d, y + i);
          hn::BlendedStore(f(d, a, b), hn::RebindMask(dout, mask), dout, out + i);
        });
  }
}

template <class In, class Out, class F>
TileOp binary(Forms forms) {
  switch (forms) {
    case Forms::kTiles: return binary_loop<In, Out, F, Forms::kTiles>;
    case Forms::kFirstPerRow: return binary_loop<In, Out, F, Forms::kFirstPerRow>;
    default: return binary_loop<In, Out, F, Forms::kSecondPerRow>;
  }
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
