// Transposing a matrix by blocks that stay in the nearest cache; 4-byte elements 4 x 4 in vectors.
#include <algorithm>

#include "runtime/cpu/strided_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/cpu/transpose.cc"
#include "runtime/cpu/targets.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using U = std::uint32_t;

HWY_INLINE void transpose_4x4(const U* from, std::int64_t from_stride, U* to, std::int64_t to_stride) {
  const hn::FixedTag<U, 4> d;
  const hn::FixedTag<std::uint64_t, 2> d64;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto ab_low = hn::BitCast(d64, hn::InterleaveLower(d, a, b)),
             ce_low = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(d64, hn::InterleaveUpper(d, a, b)),
             ce_high = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab_high, ce_high)), d, to + 3 * to_stride);
}

// One block: whole 4 x 4, then what is left at its right and lower edge.
void transpose_block(const U* from, std::int64_t from_stride, U* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t cols) {
  const std::int64_t whole_rows = rows / 4 * 4, whole_cols = cols / 4 * 4;
  for (std::int64_t c = 0; c < whole_cols; c += 4)
    for (std::int64_t r = 0; r < whole_rows; r += 4)
      transpose_4x4(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  for (std::int64_t c = 0; c < cols; ++c)
    for (std::int64_t r = c < whole_cols ? whole_rows : 0; r < rows; ++r)
      to[c * to_stride + r] = from[r * from_stride + c];
}

using Block = void (*)(const U*, std::int64_t, U*, std::int64_t, std::int64_t, std::int64_t);
Block find_block() { return transpose_block; }

}  // namespace weft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::cpu {

HWY_EXPORT(find_block);

namespace {

constexpr std::int64_t kBlock = 32;
constexpr std::int64_t kPages =
    512;  // rows at a time: each may be a page of its own, and they must not be looked up anew

template <class T>
void transpose_scalars(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                       std::int64_t cols) {
  for (std::int64_t c = 0; c < cols; ++c)
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
}

template <class T, class Block>
void by_blocks(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t cols, const Block& block) {
  for (std::int64_t run = 0; run < rows; run += kPages)
    for (std::int64_t c = 0; c < cols; c += kBlock)
      for (std::int64_t r = run; r < std::min(rows, run + kPages); r += kBlock)
        block(reinterpret_cast<const T*>(from) + r * from_stride + c, from_stride,
              reinterpret_cast<T*>(to) + c * to_stride + r, to_stride, std::min({kBlock, rows - r, run + kPages - r}),
              std::min(kBlock, cols - c));
}

}  // namespace

void transpose(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
               std::int64_t rows, std::int64_t cols, std::int64_t bytes) {
  static const auto kVectors = HWY_DYNAMIC_DISPATCH(find_block)();
  switch (bytes) {
    case 1:
      return by_blocks<std::uint8_t>(from, from_stride, to, to_stride, rows, cols, transpose_scalars<std::uint8_t>);
    case 2:
      return by_blocks<std::uint16_t>(from, from_stride, to, to_stride, rows, cols, transpose_scalars<std::uint16_t>);
    case 4: return by_blocks<std::uint32_t>(from, from_stride, to, to_stride, rows, cols, kVectors);
    default:
      return by_blocks<std::uint64_t>(from, from_stride, to, to_stride, rows, cols, transpose_scalars<std::uint64_t>);
  }
}

}  // namespace weft::cpu
#endif
