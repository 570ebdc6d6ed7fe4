// Blocks of a dim as a wire knows them: one after another, in rank order.
#pragma once

#include <string>

#include "language/shape_math.h"
#include "runtime/host/views.h"

namespace weft {

// The rank-th of `parts` equal runs of a dim.
inline TensorView block_of(const TensorView& view, const std::string& dim, int parts, int rank) {
  const std::int64_t size = view.shape.size_of(dim) / parts;
  return run_of(view, dim, rank * size, size);
}

// Whether the runs of the dim lie one after another as they are: it is the outermost of a dense value.
inline bool lies_in_blocks(const TensorView& view, const std::string& dim) {
  for (std::size_t d = 0; d < view.shape.position(dim); ++d)
    if (view.shape[d].size != 1) return false;
  return view.strides == dense_strides(view.shape);
}

}  // namespace weft
