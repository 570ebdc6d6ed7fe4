// Hazards: which earlier work a piece of work must wait for, by the bytes that each reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/host/kernel.h"

namespace weft::cuda {

struct Span {
  const std::byte *begin = nullptr, *end = nullptr;
};

// From the first element of a view to its last.
inline Span span_of(const TensorView& view) {
  const auto* begin = static_cast<const std::byte*>(view.data);
  std::int64_t last = 0;
  for (std::size_t d = 0; d < view.shape.rank(); ++d) last += (view.shape[d].size - 1) * view.strides[d];
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(size_of(view.dtype))};
}

// What the kernels of one instruction touch, on all processors of the card.
struct Touched {
  std::vector<Span> reads, writes;
};

inline bool overlap(const std::vector<Span>& some, const std::vector<Span>& others) {
  for (const Span& a : some)
    for (const Span& b : others)
      if (a.begin < b.end && b.begin < a.end) return true;
  return false;
}

// One writes what the other reads or writes.
inline bool conflict(const Touched& a, const Touched& b) {
  return overlap(a.writes, b.writes) || overlap(a.writes, b.reads) || overlap(a.reads, b.writes);
}

}  // namespace weft::cuda
