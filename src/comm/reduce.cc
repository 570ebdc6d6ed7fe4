// Written once over vectors and compiled for every x86 level by Highway; the machine's best is chosen at the first call.
// The tail of a range goes through the same vector code, padded, so that its bits cannot differ from the middle's.
#include "comm/reduce.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "comm/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "base/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace weft::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Sources = std::span<const std::byte* const>;
using Targets = std::span<std::byte* const>;

// How a dtype lies in memory and in which lanes it is reduced.
template <class T>
struct Plain {
  using Stored = T;
  using D = hn::ScalableTag<T>;
  static HWY_INLINE hn::Vec<D> load(D d, const T* from) { return hn::LoadU(d, from); }
  static HWY_INLINE void store(D d, hn::Vec<D> v, T* to) { hn::StoreU(v, d, to); }
};

struct AsBF16 {
  using Stored = std::uint16_t;
  using D = hn::ScalableTag<float>;
  static HWY_INLINE hn::Vec<D> load(D, const std::uint16_t* from) {
    return bf16::HWY_NAMESPACE::widen(hn::LoadU(bf16::HWY_NAMESPACE::Bits(), from));
  }
  static HWY_INLINE void store(D, hn::Vec<D> v, std::uint16_t* to) {
    hn::StoreU(bf16::HWY_NAMESPACE::narrow(v), bf16::HWY_NAMESPACE::Bits(), to);
  }
};

struct AsF16 {
  using Stored = hwy::float16_t;
  using D = hn::ScalableTag<float>;
  static HWY_INLINE hn::Vec<D> load(D d, const hwy::float16_t* from) {
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, from));
  }
  static HWY_INLINE void store(D, hn::Vec<D> v, hwy::float16_t* to) {
    const hn::Rebind<hwy::float16_t, D> d16;
    hn::StoreU(hn::DemoteTo(d16, v), d16, to);
  }
};

// x86's max and min give the second operand if either is NaN; ours give the NaN.
template <class V>
HWY_INLINE V with_nan(V a, V b, V otherwise) {
  return hn::IfThenElse(hn::IsNaN(a), a, hn::IfThenElse(hn::IsNaN(b), b, otherwise));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V lane_by_lane_product(D d, V a, V b) {
  using T = hn::TFromD<D>;
  using U = std::make_unsigned_t<T>;
  HWY_ALIGN T x[hn::MaxLanes(D())], y[hn::MaxLanes(D())];
  hn::Store(a, d, x);
  hn::Store(b, d, y);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i)
    x[i] = static_cast<T>(static_cast<U>(static_cast<U>(x[i]) * static_cast<U>(y[i])));
  return hn::Load(d, x);
}

template <Reduce kReduce, class D, class V = hn::Vec<D>>
HWY_INLINE V combine(D d, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (kReduce == Reduce::kSum) {
    return hn::Add(a, b);
  } else if constexpr (kReduce == Reduce::kMax) {
    if constexpr (hwy::IsFloat<T>()) return with_nan(a, b, hn::Max(a, b));
    else return hn::Max(a, b);
  } else if constexpr (kReduce == Reduce::kMin) {
    if constexpr (hwy::IsFloat<T>()) return with_nan(a, b, hn::Min(a, b));
    else return hn::Min(a, b);
  } else {
    if constexpr (hwy::IsFloat<T>() || sizeof(T) == 4) return hn::Mul(a, b);
    else return lane_by_lane_product(d, a, b);
  }
}

// Fewer elements than a vector: through padded copies.
template <class Form, Reduce kReduce>
void reduce_tail(Sources sources, Targets targets, std::size_t at, std::size_t count) {
  using Stored = typename Form::Stored;
  const typename Form::D d;
  HWY_ALIGN Stored pad[hn::MaxLanes(typename Form::D())] = {};
  const auto padded = [&](const std::byte* from) {
    std::memcpy(pad, from + at * sizeof(Stored), count * sizeof(Stored));
    return Form::load(d, pad);
  };
  auto sum = padded(sources[0]);
  for (const std::byte* source : sources.subspan(1)) sum = combine<kReduce>(d, sum, padded(source));
  Form::store(d, sum, pad);
  for (std::byte* target : targets) std::memcpy(target + at * sizeof(Stored), pad, count * sizeof(Stored));
}

// Four vectors at a time, so that the loops over sources and targets cost little beside the memory.
template <class Form, Reduce kReduce>
void reduce_range(Sources sources, Targets targets, std::size_t count) {
  using Stored = typename Form::Stored;
  const typename Form::D d;
  const std::size_t lanes = hn::Lanes(d);
  const auto load = [&](const std::byte* from, std::size_t at) {
    return Form::load(d, reinterpret_cast<const Stored*>(from) + at);
  };
  const auto store = [&](auto v, std::byte* to, std::size_t at) {
    Form::store(d, v, reinterpret_cast<Stored*>(to) + at);
  };
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    auto a = load(sources[0], i), b = load(sources[0], i + lanes);
    auto c = load(sources[0], i + 2 * lanes), e = load(sources[0], i + 3 * lanes);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      a = combine<kReduce>(d, a, load(sources[s], i));
      b = combine<kReduce>(d, b, load(sources[s], i + lanes));
      c = combine<kReduce>(d, c, load(sources[s], i + 2 * lanes));
      e = combine<kReduce>(d, e, load(sources[s], i + 3 * lanes));
    }
    for (std::byte* target : targets) {
      store(a, target, i);
      store(b, target, i + lanes);
      store(c, target, i + 2 * lanes);
      store(e, target, i + 3 * lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) {
    auto sum = load(sources[0], i);
    for (std::size_t s = 1; s < sources.size(); ++s) sum = combine<kReduce>(d, sum, load(sources[s], i));
    for (std::byte* target : targets) store(sum, target, i);
  }
  if (i < count) reduce_tail<Form, kReduce>(sources, targets, i, count - i);
}

// What comes before and after the sources; both null in a whole reduction.
struct ReduceEnds {
  const std::byte* before = nullptr;
  std::byte* after = nullptr;
};

// A vector at a time, the last one padded.
template <class Form, Reduce kReduce>
void reduce_leg_range(const ReduceEnds& leg, Sources sources, Targets targets, std::size_t count) {
  using Stored = typename Form::Stored;
  using Passed = hn::TFromD<typename Form::D>;
  const typename Form::D d;
  const std::size_t lanes = hn::Lanes(d);
  HWY_ALIGN Stored stored[hn::MaxLanes(typename Form::D())] = {};
  HWY_ALIGN Passed passed[hn::MaxLanes(typename Form::D())] = {};
  for (std::size_t i = 0; i < count; i += lanes) {
    const std::size_t n = std::min(lanes, count - i);
    auto sum = hn::Zero(d);
    bool begun = leg.before != nullptr;
    if (begun) {
      std::memcpy(passed, leg.before + i * sizeof(Passed), n * sizeof(Passed));
      sum = hn::Load(d, passed);
    }
    for (const std::byte* source : sources) {
      std::memcpy(stored, source + i * sizeof(Stored), n * sizeof(Stored));
      const auto value = Form::load(d, stored);
      sum = begun ? combine<kReduce>(d, sum, value) : value;
      begun = true;
    }
    if (leg.after != nullptr) {
      hn::Store(sum, d, passed);
      std::memcpy(leg.after + i * sizeof(Passed), passed, n * sizeof(Passed));
      continue;
    }
    Form::store(d, sum, stored);
    for (std::byte* target : targets) std::memcpy(target + i * sizeof(Stored), stored, n * sizeof(Stored));
  }
}

template <class Form, Reduce kReduce>
void reduce_one(const ReduceEnds& leg, Sources sources, Targets targets, std::size_t count) {
  if (leg.before == nullptr && leg.after == nullptr) reduce_range<Form, kReduce>(sources, targets, count);
  else reduce_leg_range<Form, kReduce>(leg, sources, targets, count);
}

template <class Form>
void reduce_form(Reduce reduce, const ReduceEnds& leg, Sources sources, Targets targets, std::size_t count) {
  switch (reduce) {
    case Reduce::kSum: return reduce_one<Form, Reduce::kSum>(leg, sources, targets, count);
    case Reduce::kMax: return reduce_one<Form, Reduce::kMax>(leg, sources, targets, count);
    case Reduce::kMin: return reduce_one<Form, Reduce::kMin>(leg, sources, targets, count);
    case Reduce::kProduct: return reduce_one<Form, Reduce::kProduct>(leg, sources, targets, count);
  }
}

// Bools are bytes 0 and 1: any is max, all is min.
void reduce_bools(Reduce reduce, const ReduceEnds& leg, Sources sources, Targets targets, std::size_t count) {
  const bool any = reduce == Reduce::kSum || reduce == Reduce::kMax;
  reduce_form<Plain<std::uint8_t>>(any ? Reduce::kMax : Reduce::kMin, leg, sources, targets, count);
}

void reduce_any(DType dtype, Reduce reduce, const std::byte* before, Sources sources, std::byte* after, Targets targets,
                std::size_t count) {
  const ReduceEnds leg{before, after};
  switch (dtype) {
    case DType::kF32: return reduce_form<Plain<float>>(reduce, leg, sources, targets, count);
    case DType::kBF16: return reduce_form<AsBF16>(reduce, leg, sources, targets, count);
    case DType::kF16: return reduce_form<AsF16>(reduce, leg, sources, targets, count);
    case DType::kF64: return reduce_form<Plain<double>>(reduce, leg, sources, targets, count);
    case DType::kI32: return reduce_form<Plain<std::int32_t>>(reduce, leg, sources, targets, count);
    case DType::kI64: return reduce_form<Plain<std::int64_t>>(reduce, leg, sources, targets, count);
    case DType::kU32: return reduce_form<Plain<std::uint32_t>>(reduce, leg, sources, targets, count);
    case DType::kU8: return reduce_form<Plain<std::uint8_t>>(reduce, leg, sources, targets, count);
    case DType::kI8: return reduce_form<Plain<std::int8_t>>(reduce, leg, sources, targets, count);
    case DType::kBool: return reduce_bools(reduce, leg, sources, targets, count);
  }
}

}  // namespace weft::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::comm {

HWY_EXPORT(reduce_any);

void reduce_in_rank_order(DType dtype, Reduce reduce, std::span<const std::byte* const> sources,
                          std::span<std::byte* const> targets, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(reduce_any)(dtype, reduce, nullptr, sources, nullptr, targets, count);
}

void reduce_leg(DType dtype, Reduce reduce, const std::byte* before, std::span<const std::byte* const> sources,
                std::byte* after, std::span<std::byte* const> targets, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(reduce_any)(dtype, reduce, before, sources, after, targets, count);
}

std::size_t leg_size_of(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF16 ? sizeof(float) : size_of(dtype);
}

}  // namespace weft::comm
#endif  // HWY_ONCE
