#include "runtime/cpu/tile_convert.h"

#include <cstring>

#include "base/dispatch.h"

#ifndef WEFT_TILE_CONVERSIONS_  // once, whatever the targets
#define WEFT_TILE_CONVERSIONS_
namespace weft::cpu {
// The vector loops of one target.
struct Conversions {
  void (*load_bf16)(const void*, void*, std::size_t);
  void (*load_bytes)(const void*, void*, std::size_t);
  void (*load_signed_bytes)(const void*, void*, std::size_t);
  void (*store_bf16)(const void*, void*, std::size_t);
  void (*store_bytes)(const void*, void*, std::size_t);
  void (*store_signed_bytes)(const void*, void*, std::size_t);
  TileOp round_bf16, round_f16, f32_is_true, i32_is_true, i32_to_f32, low_byte, low_signed_byte, f32_to_i8;
};
}  // namespace weft::cpu
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/tile_convert.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "base/bf16-inl.h"
#include "runtime/cpu/tile_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

using F = hn::ScalableTag<float>;
namespace half = bf16::HWY_NAMESPACE;

struct RoundBF16 {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return half::nearest(x);
  }
};
struct RoundF16 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::DemoteTo(d16, x));
  }
};
struct IsTrue {
  template <class D, class V>
  HWY_INLINE hn::Vec<hn::RebindToSigned<D>> operator()(D d, V x) const {
    const hn::RebindToSigned<D> di;
    return hn::IfThenElseZero(hn::RebindMask(di, hn::Not(hn::Eq(x, hn::Zero(d)))), hn::Set(di, 1));
  }
};
struct ToF32 {
  template <class D, class V>
  HWY_INLINE hn::Vec<F> operator()(D, V x) const {
    return hn::ConvertTo(F(), x);
  }
};
struct LowByte {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::And(x, hn::Set(d, 255));
  }
};

struct LowSignedByte {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::ShiftRight<24>(hn::ShiftLeft<24>(x));
  }
};
// Towards zero, clamped; NaN gives 0.
struct ToI8 {
  template <class D, class V>
  HWY_INLINE hn::Vec<hn::RebindToSigned<D>> operator()(D d, V x) const {
    const V number = hn::IfThenElseZero(hn::Eq(x, x), x);
    return hn::ConvertTo(hn::RebindToSigned<D>(), hn::Min(hn::Max(number, hn::Set(d, -128.0f)), hn::Set(d, 127.0f)));
  }
};

// Whole vectors, then the rest through a padded copy.
template <class Lanes, class Stored, class Convert>
HWY_INLINE void load_side_by_side(const void* from, void* to, std::size_t count, const Convert& convert) {
  const hn::ScalableTag<Lanes> d;
  const hn::Rebind<Stored, decltype(d)> ds;
  const auto* source = static_cast<const Stored*>(from);
  auto* target = static_cast<Lanes*>(to);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(convert(hn::LoadU(ds, source + i)), d, target + i);
  if (i == count) return;
  Stored pad[hn::MaxLanes(hn::ScalableTag<Lanes>())] = {};
  std::memcpy(pad, source + i, (count - i) * sizeof(Stored));
  hn::BlendedStore(convert(hn::LoadU(ds, pad)), hn::FirstN(d, count - i), d, target + i);
}

void load_bf16(const void* from, void* to, std::size_t count) {
  load_side_by_side<float, std::uint16_t>(from, to, count, [](auto v) HWY_ATTR { return half::widen(v); });
}
void load_bytes(const void* from, void* to, std::size_t count) {
  const hn::ScalableTag<std::int32_t> d;
  load_side_by_side<std::int32_t, std::uint8_t>(from, to, count, [&](auto v) HWY_ATTR { return hn::PromoteTo(d, v); });
}

void load_signed_bytes(const void* from, void* to, std::size_t count) {
  const hn::ScalableTag<std::int32_t> d;
  load_side_by_side<std::int32_t, std::int8_t>(from, to, count, [&](auto v) HWY_ATTR { return hn::PromoteTo(d, v); });
}

template <class Lanes, class Stored, class Convert>
HWY_INLINE void store_side_by_side(const void* from, void* to, std::size_t count, const Convert& convert) {
  const hn::ScalableTag<Lanes> d;
  const hn::Rebind<Stored, decltype(d)> ds;
  const auto* source = static_cast<const Lanes*>(from);
  auto* target = static_cast<Stored*>(to);
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(convert(hn::LoadU(d, source + i)), ds, target + i);
  if (i == count) return;
  Stored pad[hn::MaxLanes(hn::ScalableTag<Lanes>())];
  hn::StoreU(convert(hn::MaskedLoad(hn::FirstN(d, count - i), d, source + i)), ds, pad);
  std::memcpy(target + i, pad, (count - i) * sizeof(Stored));
}

void store_bf16(const void* from, void* to, std::size_t count) {
  store_side_by_side<float, std::uint16_t>(from, to, count, [](auto v) HWY_ATTR { return half::narrow(v); });
}
void store_bytes(const void* from, void* to, std::size_t count) {
  store_side_by_side<std::int32_t, std::uint8_t>(from, to, count, [](auto v) HWY_ATTR {
    const hn::Rebind<std::uint8_t, decltype(hn::DFromV<decltype(v)>())> d8;
    return hn::DemoteTo(d8, v);
  });
}

void store_signed_bytes(const void* from, void* to, std::size_t count) {
  store_side_by_side<std::int32_t, std::int8_t>(from, to, count, [](auto v) HWY_ATTR {
    const hn::Rebind<std::int8_t, decltype(hn::DFromV<decltype(v)>())> d8;
    return hn::DemoteTo(d8, v);
  });
}

const Conversions* conversions() {
  static const Conversions kConversions = {load_bf16,
                                           load_bytes,
                                           load_signed_bytes,
                                           store_bf16,
                                           store_bytes,
                                           store_signed_bytes,
                                           unary_loop<float, float, RoundBF16>,
                                           unary_loop<float, float, RoundF16>,
                                           unary_loop<float, std::int32_t, IsTrue>,
                                           unary_loop<std::int32_t, std::int32_t, IsTrue>,
                                           unary_loop<std::int32_t, float, ToF32>,
                                           unary_loop<std::int32_t, std::int32_t, LowByte>,
                                           unary_loop<std::int32_t, std::int32_t, LowSignedByte>,
                                           unary_loop<float, std::int32_t, ToI8>};
  return &kConversions;
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

HWY_EXPORT(conversions);

namespace {

const Conversions& table() {
  static const Conversions* const kTable = HWY_DYNAMIC_DISPATCH(conversions)();
  return *kTable;
}

template <class T>
using LaneType = std::conditional_t<
    std::is_same_v<T, double>, double,
    std::conditional_t<std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint32_t>, std::int64_t,
                       std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, Bool>, std::int32_t, float>>>;

template <class T>
LaneType<T> to_lane(T x) {
  if constexpr (std::is_same_v<T, Bool>) return x.bits != 0;
  else return static_cast<LaneType<T>>(x);
}
template <class T>
T from_lane(LaneType<T> x) {
  if constexpr (std::is_same_v<T, Bool>) return Bool{static_cast<std::uint8_t>(x != 0)};
  else return static_cast<T>(x);
}

template <class T>
void load(const void* from, std::ptrdiff_t step, void* to, std::size_t count) {
  if (step == 1) {
    if constexpr (std::is_same_v<T, LaneType<T>>) return void(std::memcpy(to, from, count * sizeof(T)));
    if constexpr (std::is_same_v<T, BF16>) return table().load_bf16(from, to, count);
    if constexpr (std::is_same_v<T, Bool> || std::is_same_v<T, std::uint8_t>)
      return table().load_bytes(from, to, count);
    if constexpr (std::is_same_v<T, std::int8_t>) return table().load_signed_bytes(from, to, count);
  }
  const auto* source = static_cast<const T*>(from);
  auto* target = static_cast<LaneType<T>*>(to);
  for (std::size_t i = 0; i < count; ++i) target[i] = to_lane(source[static_cast<std::ptrdiff_t>(i) * step]);
}

template <class T>
void store(const void* from, void* to, std::ptrdiff_t step, std::size_t count) {
  if (step == 1) {
    if constexpr (std::is_same_v<T, LaneType<T>>) return void(std::memcpy(to, from, count * sizeof(T)));
    if constexpr (std::is_same_v<T, BF16>) return table().store_bf16(from, to, count);
    if constexpr (std::is_same_v<T, Bool> || std::is_same_v<T, std::uint8_t>)
      return table().store_bytes(from, to, count);
    if constexpr (std::is_same_v<T, std::int8_t>) return table().store_signed_bytes(from, to, count);
  }
  const auto* source = static_cast<const LaneType<T>*>(from);
  auto* target = static_cast<T*>(to);
  for (std::size_t i = 0; i < count; ++i) target[static_cast<std::ptrdiff_t>(i) * step] = from_lane<T>(source[i]);
}

// out = f(x), one by one.
template <class In, class Out, class F>
void each(const TileArgs& args, const F& f) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const auto r = static_cast<std::ptrdiff_t>(row);
    const In* x = static_cast<const In*>(args.in[0]) + r * args.in_stride[0];
    Out* out = static_cast<Out*>(args.out) + r * args.out_stride;
    for (std::size_t i = 0; i < args.cols; ++i) out[i] = f(x[i]);
  }
}

template <class From, class To>
void cast(const TileArgs& args) {
  using In = LaneType<From>;
  using Out = LaneType<To>;
  each<In, Out>(args, [](In x) {
    if constexpr (std::is_integral_v<In>) return to_lane(from_int64<To>(x));
    else return to_lane(from_double<To>(x));
  });
}

void wrap_u32(const TileArgs& args) {
  each<std::int64_t, std::int64_t>(args, [](std::int64_t x) { return static_cast<std::uint32_t>(x); });
}

}  // namespace

LoadOp load_op(DType dtype) {
  return visit_dtype(dtype, []<class T>() -> LoadOp { return load<T>; });
}
StoreOp store_op(DType dtype) {
  return visit_dtype(dtype, []<class T>() -> StoreOp { return store<T>; });
}

TileOp fit_op(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return table().round_bf16;
    case DType::kF16: return table().round_f16;
    case DType::kU8: return table().low_byte;
    case DType::kI8: return table().low_signed_byte;
    case DType::kBool: return table().i32_is_true;
    case DType::kU32: return wrap_u32;
    default: return nullptr;
  }
}

TileOp cast_op(DType from, DType to) {
  const Lane source = lane_of(from), target = lane_of(to);
  if (source == Lane::kF32 && target == Lane::kF32) {
    const TileOp fit = fit_op(to);
    return fit ? fit : find_tile_op("identity", Lane::kF32, Forms::kTiles);
  }
  if (source == Lane::kI32 && to == DType::kF32) return table().i32_to_f32;
  if (source == Lane::kF32 && to == DType::kBool) return table().f32_is_true;
  if (source == Lane::kF32 && to == DType::kI8) return table().f32_to_i8;
  return visit_dtype(
      from, [&]<class From>() { return visit_dtype(to, []<class To>() -> TileOp { return cast<From, To>; }); });
}

namespace {

template <class T>
T number(Lane lane, const void* x, std::ptrdiff_t i) {
  switch (lane) {
    case Lane::kF32: return static_cast<T>(static_cast<const float*>(x)[i]);
    case Lane::kF64: return static_cast<T>(static_cast<const double*>(x)[i]);
    case Lane::kI32: return static_cast<T>(static_cast<const std::int32_t*>(x)[i]);
    default: return static_cast<T>(static_cast<const std::int64_t*>(x)[i]);
  }
}

template <class T>
void put(Lane lane, void* to, std::ptrdiff_t i, T value) {
  switch (lane) {
    case Lane::kF32: static_cast<float*>(to)[i] = static_cast<float>(value); break;
    case Lane::kF64: static_cast<double*>(to)[i] = static_cast<double>(value); break;
    case Lane::kI32: static_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(value); break;
    case Lane::kI64: static_cast<std::int64_t*>(to)[i] = static_cast<std::int64_t>(value); break;
  }
}

template <class T, class F1, class F2>
void apply(F1 f1, F2 f2, Lane in, Lane out, Forms forms, const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row)
    for (std::size_t col = 0; col < args.cols; ++col) {
      const auto r = static_cast<std::ptrdiff_t>(row), c = static_cast<std::ptrdiff_t>(col);
      const T x = number<T>(in, args.in[0], r * args.in_stride[0] + (forms == Forms::kFirstPerRow ? 0 : c));
      T y = x;
      if (f1) y = f1(x);
      else y = f2(x, number<T>(in, args.in[1], r * args.in_stride[1] + (forms == Forms::kSecondPerRow ? 0 : c)));
      put(out, args.out, r * args.out_stride + c, y);
    }
}

}  // namespace

void apply_scalars(const Pointwise& function, Lane in, Lane out, Forms forms, const TileArgs& args) {
  if (in == Lane::kF32 || in == Lane::kF64) apply<double>(function.f1, function.f2, in, out, forms, args);
  else apply<std::int64_t>(function.i1, function.i2, in, out, forms, args);
}

void set_lane(Lane lane, void* to, double value) { put(lane, to, 0, value); }
void set_lane(Lane lane, void* to, std::int64_t value) { put(lane, to, 0, value); }

}  // namespace weft::cpu
#endif
