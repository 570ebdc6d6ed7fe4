// Walking over strided values whose dims are matched by name.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/backend.h"

namespace weft {

// The strides of `view` along the dims of `shape`; 0 where it lacks the dim (a broadcast).
inline std::vector<std::int64_t> strides_along(const TensorView& view, const Shape& shape) {
  std::vector<std::int64_t> strides;
  for (const Dim& dim : shape) {
    const auto at = view.shape.find(dim.name);
    strides.push_back(at ? view.strides[*at] : 0);
  }
  return strides;
}

// Calls row(offsets) for every row along the last dim of `shape`; offsets[k] is the element offset in operand k, whose
// strides along `shape` are strides[k]. A scalar is one row of one element.
template <class Row>
void for_each_row(const Shape& shape, const std::vector<std::vector<std::int64_t>>& strides, const Row& row) {
  const std::size_t outer = shape.rank() == 0 ? 0 : shape.rank() - 1;
  std::vector<std::int64_t> index(outer, 0), offsets(strides.size(), 0);
  while (true) {
    row(offsets.data(), index.data());
    std::size_t d = outer;
    while (d > 0) {
      --d;
      for (std::size_t k = 0; k < strides.size(); ++k) offsets[k] += strides[k][d];
      if (++index[d] < shape[d].size) break;
      for (std::size_t k = 0; k < strides.size(); ++k) offsets[k] -= strides[k][d] * shape[d].size;
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

inline std::int64_t row_length(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1].size; }
inline std::int64_t row_stride(const std::vector<std::int64_t>& strides) { return strides.empty() ? 0 : strides.back(); }

// to = from, element by element, dims matched by name; a dim that `from` lacks is repeated.
void copy_elements(const TensorView& from, const TensorView& to);

// A view of dense storage.
TensorView dense_view(void* data, DType dtype, const Shape& shape);

}  // namespace weft
