// Products of small matrices in cache, over vectors: c[m, n] = or += a[m, k] b[k, n]. Included once per target by files
// that Highway compiles for each; so no include guard of the usual kind.
#if defined(WEFT_SMALL_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef WEFT_SMALL_PRODUCT_INL
#undef WEFT_SMALL_PRODUCT_INL
#else
#define WEFT_SMALL_PRODUCT_INL
#endif

#include <cstdint>
#include <utility>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, 16>;
using VF = hn::Vec<F>;

// b's rows and c's lie side by side and are aligned; a may have any strides. n is a multiple of 16.
struct SmallProduct {
  std::int64_t m = 0, n = 0, k = 0;
  const float* a = nullptr;
  std::int64_t a_row = 0, a_column = 0;
  const float* b = nullptr;
  std::int64_t b_row = 0;
  float* c = nullptr;
  std::int64_t c_row = 0;
  bool adds = false;
};

// Rows x vectors of results that stay in registers.
template <int kRows, int kVectors, std::size_t... I, std::size_t... J>
HWY_INLINE void product_tile(const SmallProduct& p, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                             float* HWY_RESTRICT c, std::index_sequence<I...>, std::index_sequence<J...>) {
  const F f;
  constexpr std::size_t kLanes = hn::MaxLanes(F());
  VF sum[kRows * kVectors];
  if (p.adds) ((sum[I] = hn::Load(f, c + (I / kVectors) * p.c_row + (I % kVectors) * kLanes)), ...);
  else ((sum[I] = hn::Zero(f)), ...);
  for (std::int64_t k = 0; k < p.k; ++k, a += p.a_column, b += p.b_row) {
    VF row[kVectors];
    ((row[J] = hn::Load(f, b + J * kLanes)), ...);
    ((sum[I] = hn::MulAdd(hn::Set(f, a[(I / kVectors) * p.a_row]), row[I % kVectors], sum[I])), ...);
  }
  ((hn::Store(sum[I], f, c + (I / kVectors) * p.c_row + (I % kVectors) * kLanes)), ...);
}

template <int kRows, int kVectors>
HWY_NOINLINE void product_rows(const SmallProduct& p, std::int64_t m, std::int64_t n) {
  product_tile<kRows, kVectors>(p, p.a + m * p.a_row, p.b + n, p.c + m * p.c_row + n,
                                std::make_index_sequence<kRows * kVectors>(), std::make_index_sequence<kVectors>());
}

template <int kVectors>
HWY_INLINE void product_columns(const SmallProduct& p, std::int64_t n) {
  std::int64_t m = 0;
  for (; m + 6 <= p.m; m += 6) product_rows<6, kVectors>(p, m, n);
  for (; m + 4 <= p.m; m += 4) product_rows<4, kVectors>(p, m, n);
  for (; m + 2 <= p.m; m += 2) product_rows<2, kVectors>(p, m, n);
  if (m < p.m) product_rows<1, kVectors>(p, m, n);
}

HWY_INLINE void small_product(const SmallProduct& p) {
  constexpr std::int64_t kLanes = hn::MaxLanes(F());
  std::int64_t n = 0;
  if constexpr (kLanes == 16) {  // 32 registers
    for (; n + 4 * kLanes <= p.n; n += 4 * kLanes) product_columns<4>(p, n);
    if (n + 3 * kLanes <= p.n) {
      product_columns<3>(p, n);
      n += 3 * kLanes;
    }
  }
  for (; n + 2 * kLanes <= p.n; n += 2 * kLanes) product_columns<2>(p, n);
  if (n < p.n) product_columns<1>(p, n);
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
