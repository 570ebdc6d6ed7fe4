// Joining the rows and the columns of tiles. The order of sums depends on the tile alone, not on the width of vectors.
#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/cpu/tile_ops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/tile_reduce.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSums = 64, kBlock = 2048, kRowBlock = 32;

// Lane j joins lane j + half, down to one.
template <class V, class Join>
HWY_INLINE float folded(V v, const Join& join) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) > 4) {
    const hn::Half<decltype(d)> half;
    return folded(join(hn::LowerHalf(half, v), hn::UpperHalf(half, v)), join);
  } else {
    v = join(v, hn::Shuffle1032(v));
    return hn::GetLane(join(v, hn::Shuffle2301(v)));
  }
}

// At most kBlock numbers: running sum j takes the elements j, j + 64, ….
HWY_INLINE float block_sum(const float* x, std::size_t count) {
  const hn::ScalableTag<float> d;
  constexpr std::size_t kLanes = hn::MaxLanes(hn::ScalableTag<float>()), kVectors = kSums / kLanes;
  hn::Vec<decltype(d)> sums[kVectors];
#pragma GCC unroll 8
  for (std::size_t k = 0; k < kVectors; ++k) sums[k] = hn::Zero(d);
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums)
#pragma GCC unroll 8
    for (std::size_t k = 0; k < kVectors; ++k) sums[k] = hn::Add(sums[k], hn::LoadU(d, x + i + k * kLanes));
  for (std::size_t k = 0; i + k * kLanes < count; ++k) {
    const std::size_t at = i + k * kLanes;
    sums[k] = hn::Add(sums[k], hn::MaskedLoad(hn::FirstN(d, count - at), d, x + at));
  }
#pragma GCC unroll 8
  for (std::size_t half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 8
    for (std::size_t k = 0; k < half; ++k) sums[k] = hn::Add(sums[k], sums[k + half]);
  return folded(sums[0], [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}

void sum_rows(const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const float* x = static_cast<const float*>(args.in[0]) + static_cast<std::ptrdiff_t>(row) * args.in_stride[0];
    float* out = static_cast<float*>(args.out) + row;
    if (args.cols <= kBlock) {
      *out = block_sum(x, args.cols);
      continue;
    }
    double sum = 0;
    for (std::size_t i = 0; i < args.cols; i += kBlock) sum += block_sum(x + i, std::min(kBlock, args.cols - i));
    *out = static_cast<float>(sum);
  }
}

template <bool kMax>
void extreme_rows(const TileArgs& args) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto best = [](auto a, auto b) HWY_ATTR { return kMax ? hn::Max(a, b) : hn::Min(a, b); };
  const std::size_t lanes = hn::Lanes(d);
  const V start = hn::Set(d, kMax ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity());
  for (std::size_t row = 0; row < args.rows; ++row) {
    const float* x = static_cast<const float*>(args.in[0]) + static_cast<std::ptrdiff_t>(row) * args.in_stride[0];
    V m0 = start, m1 = start, n0 = hn::Zero(d), n1 = n0;  // n: NaN where one was met, else 0
    const auto take = [&](V& m, V& n, V v) HWY_ATTR {
      m = best(m, v);
      n = hn::IfThenElse(hn::IsNaN(v), v, n);
    };
    std::size_t i = 0;
    for (; i + 2 * lanes <= args.cols; i += 2 * lanes) {
      take(m0, n0, hn::LoadU(d, x + i));
      take(m1, n1, hn::LoadU(d, x + i + lanes));
    }
    for (; i < args.cols; i += lanes) {
      const auto mask = hn::FirstN(d, std::min(lanes, args.cols - i));
      take(m0, n0, hn::IfThenElse(mask, hn::MaskedLoad(mask, d, x + i), start));
    }
    const float nan = folded(hn::Add(n0, n1), [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
    static_cast<float*>(args.out)[row] = nan != nan ? nan : folded(best(m0, m1), best);
  }
}

// A column's rows are added in f32, at most 32 of them, and then to the running double.
void sum_columns(const TileArgs& args) {
  const hn::ScalableTag<float> d;
  const hn::Half<decltype(d)> half;
  const hn::Rebind<double, decltype(half)> wide;
  const std::size_t lanes = hn::Lanes(d);
  const auto* x = static_cast<const float*>(args.in[0]);
  auto* out = static_cast<double*>(args.out);
  for (std::size_t first = 0; first < args.rows; first += kRowBlock) {
    const std::size_t last = std::min(args.rows, first + kRowBlock);
    const auto row = [&](std::size_t r) { return x + static_cast<std::ptrdiff_t>(r) * args.in_stride[0]; };
    std::size_t i = 0;
    for (; i + lanes <= args.cols; i += lanes) {
      auto sum = hn::LoadU(d, row(first) + i);
      for (std::size_t r = first + 1; r < last; ++r) sum = hn::Add(sum, hn::LoadU(d, row(r) + i));
      double* low = out + i;
      double* high = low + lanes / 2;
      hn::StoreU(hn::Add(hn::LoadU(wide, low), hn::PromoteTo(wide, hn::LowerHalf(half, sum))), wide, low);
      hn::StoreU(hn::Add(hn::LoadU(wide, high), hn::PromoteTo(wide, hn::UpperHalf(half, sum))), wide, high);
    }
    for (; i < args.cols; ++i) {
      float sum = row(first)[i];
      for (std::size_t r = first + 1; r < last; ++r) sum += row(r)[i];
      out[i] += sum;
    }
  }
}

TileOp rows_of_f32(Reduce how) {
  return how == Reduce::kSum   ? sum_rows
         : how == Reduce::kMax ? extreme_rows<true>
         : how == Reduce::kMin ? extreme_rows<false>
                               : nullptr;
}
TileOp columns_of_f32(Reduce how) { return how == Reduce::kSum ? sum_columns : nullptr; }

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

double start_of(Reduce how) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return how == Reduce::kSum ? 0 : how == Reduce::kProduct ? 1 : how == Reduce::kMax ? -kInf : kInf;
}
std::int64_t integer_start_of(Reduce how) {
  using Limits = std::numeric_limits<std::int64_t>;
  return how == Reduce::kSum ? 0 : how == Reduce::kProduct ? 1 : how == Reduce::kMax ? Limits::min() : Limits::max();
}

double joined(Reduce how, double x, double y) {
  switch (how) {
    case Reduce::kSum: return x + y;
    case Reduce::kProduct: return x * y;
    case Reduce::kMax: return x != x ? x : y != y ? y : std::max(x, y);
    default: return x != x ? x : y != y ? y : std::min(x, y);
  }
}
std::int64_t joined(Reduce how, std::int64_t x, std::int64_t y) {
  using U = std::uint64_t;
  switch (how) {
    case Reduce::kSum: return static_cast<std::int64_t>(static_cast<U>(x) + static_cast<U>(y));
    case Reduce::kProduct: return static_cast<std::int64_t>(static_cast<U>(x) * static_cast<U>(y));
    case Reduce::kMax: return std::max(x, y);
    default: return std::min(x, y);
  }
}

namespace {

template <class T>
auto wide(T x) {
  if constexpr (std::is_integral_v<T>) return static_cast<std::int64_t>(x);
  else return static_cast<double>(x);
}
template <class T>
auto start(Reduce how) {
  if constexpr (std::is_integral_v<T>) return integer_start_of(how);
  else return start_of(how);
}

template <class T, Reduce kHow>
void rows(const TileArgs& args) {
  for (std::size_t row = 0; row < args.rows; ++row) {
    const T* x = static_cast<const T*>(args.in[0]) + static_cast<std::ptrdiff_t>(row) * args.in_stride[0];
    auto sum = start<T>(kHow);
    for (std::size_t i = 0; i < args.cols; ++i) sum = joined(kHow, sum, wide(x[i]));
    static_cast<T*>(args.out)[row] = static_cast<T>(sum);
  }
}

template <class T, Reduce kHow>
void columns(const TileArgs& args) {
  auto* out = static_cast<decltype(wide(T{}))*>(args.out);
  for (std::size_t row = 0; row < args.rows; ++row) {
    const T* x = static_cast<const T*>(args.in[0]) + static_cast<std::ptrdiff_t>(row) * args.in_stride[0];
    for (std::size_t i = 0; i < args.cols; ++i) out[i] = joined(kHow, out[i], wide(x[i]));
  }
}

template <class T>
TileOp scalar(Reduce how, bool of_rows) {
  switch (how) {
    case Reduce::kSum: return of_rows ? rows<T, Reduce::kSum> : columns<T, Reduce::kSum>;
    case Reduce::kMax: return of_rows ? rows<T, Reduce::kMax> : columns<T, Reduce::kMax>;
    case Reduce::kMin: return of_rows ? rows<T, Reduce::kMin> : columns<T, Reduce::kMin>;
    default: return of_rows ? rows<T, Reduce::kProduct> : columns<T, Reduce::kProduct>;
  }
}

TileOp scalar(Reduce how, Lane lane, bool of_rows) {
  switch (lane) {
    case Lane::kF32: return scalar<float>(how, of_rows);
    case Lane::kF64: return scalar<double>(how, of_rows);
    case Lane::kI32: return scalar<std::int32_t>(how, of_rows);
    default: return scalar<std::int64_t>(how, of_rows);
  }
}

}  // namespace

HWY_EXPORT(rows_of_f32);
HWY_EXPORT(columns_of_f32);

TileOp row_reduction(Reduce how, Lane lane) {
  const TileOp fast = lane == Lane::kF32 ? HWY_DYNAMIC_DISPATCH(rows_of_f32)(how) : nullptr;
  return fast ? fast : scalar(how, lane, true);
}
TileOp column_reduction(Reduce how, Lane lane) {
  const TileOp fast = lane == Lane::kF32 ? HWY_DYNAMIC_DISPATCH(columns_of_f32)(how) : nullptr;
  return fast ? fast : scalar(how, lane, false);
}

}  // namespace weft::cpu
#endif
