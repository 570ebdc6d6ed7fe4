#include "runtime/cpu/tile_ops.h"

#include <cstring>
#include <type_traits>

#include "kernels/pointwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/tile_ops.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/highway-inl.h"
#include "runtime/cpu/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace math = vmath::HWY_NAMESPACE;

namespace bodies {

#define WEFT_FN HWY_INLINE
#include "kernels/bodies-inl.h"
#include "kernels/pointwise-inl.h"
#undef WEFT_FN

}  // namespace bodies

// A function of the table as the loops call it. Truths are 0 and 1 in i32 lanes.
template <class Body, pointwise::Gives kGives>
struct OfLanes {
  template <class D, class... V>
  HWY_INLINE auto operator()(D, V... x) const {
    if constexpr (kGives == pointwise::Gives::kSame) {
      return Body()(x...);
    } else {
      const hn::RebindToSigned<D> di;
      return hn::IfThenElseZero(hn::RebindMask(di, Body()(x...)), hn::Set(di, 1));
    }
  }
};

using F = float;
using I = std::int32_t;

template <class T>
constexpr unsigned kKinds = std::is_same_v<T, F> ? pointwise::kFloats : pointwise::kIntegers | pointwise::kBools;

// The loop over lanes of type T; null where the function takes no such numbers.
template <class T, class Body, unsigned kTakes, pointwise::Gives kGives>
TileOp unary_op() {
  using Out = std::conditional_t<kGives == pointwise::Gives::kSame, T, I>;
  if constexpr ((kTakes & kKinds<T>) != 0) return unary_loop<T, Out, OfLanes<Body, kGives>>;
  else return nullptr;
}
template <class T, class Body, unsigned kTakes, pointwise::Gives kGives>
TileOp binary_op(Forms forms) {
  using Out = std::conditional_t<kGives == pointwise::Gives::kSame, T, I>;
  if constexpr ((kTakes & kKinds<T>) != 0) return binary<T, Out, OfLanes<Body, kGives>>(forms);
  else return nullptr;
}

template <class T>
TileOp find_of(std::string_view op, Forms forms) {
  using namespace pointwise;
  using enum Gives;
#define WEFT_UNARY(name, takes, gives, flops, algebra, ...) \
  if (op == #name) return unary_op<T, bodies::name, takes, gives>();
#define WEFT_BINARY(name, takes, gives, flops, algebra, ...) \
  if (op == #name) return binary_op<T, bodies::name, takes, gives>(forms);
#include "kernels/pointwise-inl.h"
  return nullptr;
}

TileOp find(std::string_view name, Lane lane, Forms forms) {
  return lane == Lane::kF32 ? find_of<F>(name, forms) : lane == Lane::kI32 ? find_of<I>(name, forms) : nullptr;
}

// Lanes of 4 bytes are chosen as i32, whatever they hold.
template <bool kPerRowA, bool kPerRowB>
void select_loop(const TileArgs& args) {
  const hn::ScalableTag<I> d;
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const I* c = static_cast<const I*>(args.in[0]) + r * args.in_stride[0];
    const I* a = static_cast<const I*>(args.in[1]) + r * args.in_stride[1];
    const I* b = static_cast<const I*>(args.in[2]) + r * args.in_stride[2];
    I* out = static_cast<I*>(args.out) + r * args.out_stride;
    const auto a_of_row = hn::Set(d, *a), b_of_row = hn::Set(d, *b);
    each_vector(
        d, args.cols,
        [&](std::size_t i) HWY_ATTR {
          const auto no = hn::Eq(hn::LoadU(d, c + i), hn::Zero(d));
          const auto yes_value = kPerRowA ? a_of_row : hn::LoadU(d, a + i);
          const auto no_value = kPerRowB ? b_of_row : hn::LoadU(d, b + i);
          hn::StoreU(hn::IfThenElse(no, no_value, yes_value), d, out + i);
        },
        [&](std::size_t i, auto mask) HWY_ATTR {
          const auto no = hn::Eq(hn::MaskedLoad(mask, d, c + i), hn::Zero(d));
          const auto yes_value = kPerRowA ? a_of_row : hn::MaskedLoad(mask, d, a + i);
          const auto no_value = kPerRowB ? b_of_row : hn::MaskedLoad(mask, d, b + i);
          hn::BlendedStore(hn::IfThenElse(no, no_value, yes_value), mask, d, out + i);
        });
  }
}

TileOp select4(bool a_per_row, bool b_per_row) {
  if (a_per_row) return b_per_row ? select_loop<true, true> : select_loop<true, false>;
  return b_per_row ? select_loop<false, true> : select_loop<false, false>;
}

template <Pair kPair, bool kPerRowB, bool kPerRowC>
void pair_loop(const TileArgs& args) {
  const hn::ScalableTag<F> d;
  using V = hn::Vec<decltype(d)>;
  constexpr bool kHasC = kPair != Pair::kExpOfDifference;
  const auto joined = [&](V a, V b, V c) HWY_ATTR {
    if constexpr (kPair == Pair::kMultiplyAdd) return hn::Add(hn::Mul(a, b), c);
    else if constexpr (kPair == Pair::kMultiplySubtract) return hn::Sub(hn::Mul(a, b), c);
    else if constexpr (kPair == Pair::kSubtractProduct) return hn::Sub(c, hn::Mul(a, b));
    else if constexpr (kPair == Pair::kMultiplyMultiply) return hn::Mul(hn::Mul(a, b), c);
    else if constexpr (kPair == Pair::kSubtractMultiply) return hn::Mul(hn::Sub(a, b), c);
    else return math::exp(hn::Sub(a, b));
  };
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const F* a = static_cast<const F*>(args.in[0]) + r * args.in_stride[0];
    const F* b = static_cast<const F*>(args.in[1]) + r * args.in_stride[1];
    const F* c = kHasC ? static_cast<const F*>(args.in[2]) + r * args.in_stride[2] : b;
    F* out = static_cast<F*>(args.out) + r * args.out_stride;
    const V b_of_row = hn::Set(d, *b), c_of_row = hn::Set(d, *c);
    each_vector(
        d, args.cols,
        [&](std::size_t i) HWY_ATTR {
          const V y = kPerRowB ? b_of_row : hn::LoadU(d, b + i);
          const V z = kPerRowC || !kHasC ? c_of_row : hn::LoadU(d, c + i);
          hn::StoreU(joined(hn::LoadU(d, a + i), y, z), d, out + i);
        },
        [&](std::size_t i, auto mask) HWY_ATTR {
          const V y = kPerRowB ? b_of_row : hn::MaskedLoad(mask, d, b + i);
          const V z = kPerRowC || !kHasC ? c_of_row : hn::MaskedLoad(mask, d, c + i);
          hn::BlendedStore(joined(hn::MaskedLoad(mask, d, a + i), y, z), mask, d, out + i);
        });
  }
}

template <Pair kPair>
TileOp pair_in_form(bool b_per_row, bool c_per_row) {
  if (b_per_row) return c_per_row ? pair_loop<kPair, true, true> : pair_loop<kPair, true, false>;
  return c_per_row ? pair_loop<kPair, false, true> : pair_loop<kPair, false, false>;
}

TileOp find_pair(Pair pair, bool b_per_row, bool c_per_row) {
  switch (pair) {
    case Pair::kMultiplyAdd: return pair_in_form<Pair::kMultiplyAdd>(b_per_row, c_per_row);
    case Pair::kMultiplySubtract: return pair_in_form<Pair::kMultiplySubtract>(b_per_row, c_per_row);
    case Pair::kSubtractProduct: return pair_in_form<Pair::kSubtractProduct>(b_per_row, c_per_row);
    case Pair::kMultiplyMultiply: return pair_in_form<Pair::kMultiplyMultiply>(b_per_row, c_per_row);
    case Pair::kSubtractMultiply: return pair_in_form<Pair::kSubtractMultiply>(b_per_row, c_per_row);
    case Pair::kExpOfDifference: return pair_in_form<Pair::kExpOfDifference>(b_per_row, false);
  }
  return nullptr;
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

namespace {

template <bool kPerRowA, bool kPerRowB>
void select8(const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const auto* c = static_cast<const std::int32_t*>(args.in[0]) + r * args.in_stride[0];
    const auto* a = static_cast<const std::int64_t*>(args.in[1]) + r * args.in_stride[1];
    const auto* b = static_cast<const std::int64_t*>(args.in[2]) + r * args.in_stride[2];
    auto* out = static_cast<std::int64_t*>(args.out) + r * args.out_stride;
    for (std::size_t i = 0; i < args.cols; ++i) out[i] = c[i] ? a[kPerRowA ? 0 : i] : b[kPerRowB ? 0 : i];
  }
}

template <class T>
void fill(const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const T x = static_cast<const T*>(args.in[0])[r * args.in_stride[0]];
    T* out = static_cast<T*>(args.out) + r * args.out_stride;
    for (std::size_t i = 0; i < args.cols; ++i) out[i] = x;
  }
}

template <class T>
void copy(const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    std::memcpy(static_cast<T*>(args.out) + r * args.out_stride,
                static_cast<const T*>(args.in[0]) + r * args.in_stride[0], args.cols * sizeof(T));
  }
}

}  // namespace

HWY_EXPORT(find);
HWY_EXPORT(select4);
HWY_EXPORT(find_pair);

TileOp find_tile_op(std::string_view name, Lane lane, Forms forms) {
  return HWY_DYNAMIC_DISPATCH(find)(name, lane, forms);
}

TileOp pair_op(Pair pair, bool b_per_row, bool c_per_row) {
  return HWY_DYNAMIC_DISPATCH(find_pair)(pair, b_per_row, c_per_row);
}
TileOp select_op(Lane lane, bool a_per_row, bool b_per_row) {
  if (size_of(lane) == 4) return HWY_DYNAMIC_DISPATCH(select4)(a_per_row, b_per_row);
  if (a_per_row) return b_per_row ? select8<true, true> : select8<true, false>;
  return b_per_row ? select8<false, true> : select8<false, false>;
}
TileOp copy_op(Lane lane) { return size_of(lane) == 8 ? copy<std::int64_t> : copy<std::int32_t>; }
TileOp fill_op(Lane lane) { return size_of(lane) == 8 ? fill<std::int64_t> : fill<std::int32_t>; }

}  // namespace weft::cpu
#endif
