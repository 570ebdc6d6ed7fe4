// Moves ranges of elements along one dim that may be split: used by concat, slice, pad and shift.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/builder.h"

namespace weft {

// The global elements [begin, begin + size) of `source` along the dim go to [to, to + size) of the result.
struct Piece {
  ValueId source;
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t to = 0;
};

// A value of global size `size` along `dim` made of non-overlapping pieces, zeros elsewhere. All sources have the same
// other dims and the same sharding; `dim` is split over `axes` (maybe none) in each source and in the result. Permutes
// along `axes` send each element at most once, directly to its new owner. If no element changes its owner, nothing is
// sent.
ValueId assemble(Builder& builder, const std::string& dim, std::int64_t size, const Axes& axes,
                 const std::vector<Piece>& pieces);

}  // namespace weft
