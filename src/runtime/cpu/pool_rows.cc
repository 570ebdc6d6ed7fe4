#include "runtime/cpu/pool_rows.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/pool_rows.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kBlock = 32;

// The results at `column`; `load` reads a vector, or the part of one that the row still has.
template <PoolKind kKind, class D, class Load>
HWY_INLINE hn::Vec<D> joined(D d, const PoolRow& row, std::size_t column, const Load& load) {
  using V = hn::Vec<D>;
  const auto at = [&](std::size_t operand, std::size_t m)
                      HWY_ATTR { return load(row.operands[operand] + row.meetings[m][operand] + column); };
  if constexpr (kKind == PoolKind::kMax) {
    V most = hn::Set(d, -std::numeric_limits<float>::infinity());
    for (std::size_t m = 0; m < row.count; ++m) {
      const V x = at(0, m);
      most = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::Gt(x, most)), x, most);
    }
    return most;
  } else {
    const V one = hn::Set(d, 1.0f);
    V sum = hn::Zero(d);
    for (std::size_t begin = 0; begin < row.count; begin += kBlock) {
      V part = hn::Zero(d);
      for (std::size_t m = begin; m < std::min(row.count, begin + kBlock); ++m)
        if constexpr (kKind == PoolKind::kSum) part = hn::Add(part, at(0, m));
        else part = hn::Add(part, hn::IfThenElseZero(hn::Eq(at(0, m), at(1, m)), row.operands[2] ? at(2, m) : one));
      sum = hn::Add(sum, part);
    }
    return sum;
  }
}

template <PoolKind kKind>
void row_of(const PoolRow& row) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= row.length; i += lanes)
    hn::StoreU(joined<kKind>(d, row, i, [&](const float* x) HWY_ATTR { return hn::LoadU(d, x); }), d, row.out + i);
  if (i == row.length) return;
  const auto mask = hn::FirstN(d, row.length - i);
  hn::BlendedStore(joined<kKind>(d, row, i, [&](const float* x) HWY_ATTR { return hn::MaskedLoad(mask, d, x); }), mask,
                   d, row.out + i);
}

void any_row(const PoolRow& row) {
  switch (row.kind) {
    case PoolKind::kMax: return row_of<PoolKind::kMax>(row);
    case PoolKind::kSum: return row_of<PoolKind::kSum>(row);
    case PoolKind::kWinners: return row_of<PoolKind::kWinners>(row);
  }
}

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

HWY_EXPORT(any_row);

void pool_row(const PoolRow& row) { HWY_DYNAMIC_DISPATCH(any_row)(row); }

}  // namespace weft::cpu
#endif
