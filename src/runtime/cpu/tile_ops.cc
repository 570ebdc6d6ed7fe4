#include "runtime/cpu/tile_ops.h"

#include <cstring>

#include "runtime/kernels/pointwise_list.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/tile_ops.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "runtime/cpu/tile_loops-inl.h"
#include "runtime/kernels/vmath-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace math = vmath::HWY_NAMESPACE;

// One struct per name of the list, over vectors of f32 or i32.
#define WEFT_UNARY(name, result)              \
  struct name {                               \
    template <class D, class V>               \
    HWY_INLINE V operator()(D d, V x) const { \
      (void)d;                                \
      return result;                          \
    }                                         \
  };
WEFT_UNARY(identity, x)
WEFT_UNARY(negative, hn::Neg(x))
WEFT_UNARY(abs, hn::Abs(x))
WEFT_UNARY(sign, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Set(d, 1),
                                hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -1), x)))
WEFT_UNARY(square, hn::Mul(x, x))
WEFT_UNARY(sqrt, hn::Sqrt(x))
// rsqrt: 2 ulp.
WEFT_UNARY(rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
WEFT_UNARY(reciprocal, hn::Div(hn::Set(d, 1.0f), x))
WEFT_UNARY(exp, math::exp(d, x))
WEFT_UNARY(expm1, math::expm1(d, x))
WEFT_UNARY(log, math::log(d, x))
WEFT_UNARY(log1p, math::log1p(d, x))
WEFT_UNARY(sin, math::sin(d, x))
WEFT_UNARY(cos, math::cos(d, x))
WEFT_UNARY(tanh, math::tanh(d, x))
WEFT_UNARY(erf, math::erf(d, x))
WEFT_UNARY(sigmoid, math::sigmoid(d, x))
WEFT_UNARY(softplus, math::softplus(d, x))
WEFT_UNARY(relu, hn::IfThenElse(hn::IsNaN(x), x, hn::Max(x, hn::Zero(d))))
WEFT_UNARY(elu, hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, math::expm1(d, x)))
#undef WEFT_UNARY

struct floor {
  template <class D>
  HWY_INLINE hn::VFromD<D> operator()(D, hn::VFromD<D> x) const {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::Floor(x);
    else return x;
  }
};
struct selu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    constexpr double kScale = 1.0507009873554804934, kAlpha = 1.6732632423543772848;
    const V below = hn::Mul(hn::Set(d, static_cast<float>(kScale * kAlpha)), math::expm1(d, x));
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Mul(hn::Set(d, static_cast<float>(kScale)), x), below);
  }
};

#define WEFT_BINARY(name, result)                  \
  struct name {                                    \
    template <class D, class V>                    \
    HWY_INLINE V operator()(D d, V x, V y) const { \
      (void)d;                                     \
      return result;                               \
    }                                              \
  };
WEFT_BINARY(add, hn::Add(x, y))
WEFT_BINARY(subtract, hn::Sub(x, y))
WEFT_BINARY(multiply, hn::Mul(x, y))
WEFT_BINARY(divide, hn::Div(x, y))
WEFT_BINARY(pow, math::pow(d, x, y))
#undef WEFT_BINARY

// x86's min and max give the second operand if either is NaN; ours give the NaN.
template <class D, class V>
HWY_INLINE V unless_nan(D, V x, V otherwise) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) return hn::IfThenElse(hn::IsNaN(x), x, otherwise);
  else return otherwise;
}
struct minimum {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return unless_nan(d, x, hn::Min(x, y));
  }
};
struct maximum {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return unless_nan(d, x, hn::Max(x, y));
  }
};
// By doubles, as the scalar functions: a quotient that f32 rounds up to a whole number would have another floor.
struct floordiv {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return math::in_double(
        d, [](auto, auto a, auto b) HWY_ATTR { return hn::Floor(hn::Div(a, b)); }, x, y);
  }
};
struct mod {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V y) const {
    return math::in_double(
        d, [](auto, auto a, auto b) HWY_ATTR { return hn::Sub(a, hn::Mul(b, hn::Floor(hn::Div(a, b)))); }, x, y);
  }
};

template <class V>
HWY_INLINE auto at_most(V x, V y) {
  if constexpr (hwy::IsFloat<hn::TFromV<V>>()) return hn::Le(x, y);
  else return hn::Not(hn::Gt(x, y));
}

// Truths are 0 and 1 in i32 lanes.
#define WEFT_COMPARISON(name, mask)                                           \
  struct name {                                                               \
    template <class D, class V>                                               \
    HWY_INLINE hn::Vec<hn::RebindToSigned<D>> operator()(D, V x, V y) const { \
      const hn::RebindToSigned<D> di;                                         \
      return hn::IfThenElseZero(hn::RebindMask(di, mask), hn::Set(di, 1));    \
    }                                                                         \
  };
WEFT_COMPARISON(less, hn::Lt(x, y))
WEFT_COMPARISON(less_equal, at_most(x, y))
WEFT_COMPARISON(greater, hn::Gt(x, y))
WEFT_COMPARISON(greater_equal, at_most(y, x))
WEFT_COMPARISON(equal, hn::Eq(x, y))
WEFT_COMPARISON(not_equal, hn::Not(hn::Eq(x, y)))  // NaN is not equal to itself
WEFT_COMPARISON(logical_and, hn::And(hn::Ne(x, hn::Zero(di)), hn::Ne(y, hn::Zero(di))))
WEFT_COMPARISON(logical_or, hn::Or(hn::Ne(x, hn::Zero(di)), hn::Ne(y, hn::Zero(di))))
#undef WEFT_COMPARISON
struct logical_not {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElseZero(hn::Eq(x, hn::Zero(d)), hn::Set(d, 1));
  }
};

using F = float;
using I = std::int32_t;

TileOp find_f32(std::string_view name, Forms forms) {
#define WEFT_NONE(op)
#define WEFT_ONE(op) \
  if (name == #op) return unary_loop<F, F, op>;
#define WEFT_TWO(op) \
  if (name == #op) return binary<F, F, op>(forms);
#define WEFT_COMPARE(op) \
  if (name == #op) return binary<F, I, op>(forms);
  WEFT_POINTWISE_UNARY(WEFT_ONE, WEFT_ONE, WEFT_NONE)
  WEFT_POINTWISE_BINARY(WEFT_TWO, WEFT_TWO, WEFT_NONE)
  WEFT_POINTWISE_COMPARISON(WEFT_COMPARE)
#undef WEFT_ONE
#undef WEFT_TWO
#undef WEFT_COMPARE
  return nullptr;
}

TileOp find_i32(std::string_view name, Forms forms) {
  if (name == "floordiv" || name == "mod") return nullptr;
#define WEFT_ONE(op) \
  if (name == #op) return unary_loop<I, I, op>;
#define WEFT_TWO(op)                                                       \
  if constexpr (!std::is_same_v<op, floordiv> && !std::is_same_v<op, mod>) \
    if (name == #op) return binary<I, I, op>(forms);
  WEFT_POINTWISE_UNARY(WEFT_ONE, WEFT_NONE, WEFT_ONE)
  WEFT_POINTWISE_BINARY(WEFT_TWO, WEFT_NONE, WEFT_TWO)
  WEFT_POINTWISE_COMPARISON(WEFT_TWO)
#undef WEFT_ONE
#undef WEFT_TWO
#undef WEFT_NONE
  return nullptr;
}

TileOp find(std::string_view name, Lane lane, Forms forms) {
  return lane == Lane::kF32 ? find_f32(name, forms) : lane == Lane::kI32 ? find_i32(name, forms) : nullptr;
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
    else return math::exp(d, hn::Sub(a, b));
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
