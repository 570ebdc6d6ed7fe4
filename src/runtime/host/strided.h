// Walking over strided values whose dims are matched by name.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/host/kernel.h"

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

// The offsets of `view` at every index of some dims, row-major.
std::vector<std::int64_t> offsets_over(const TensorView& view, const Shape& dims);

// The rows along the last dim of `shape`, for operands whose strides along `shape` are strides[k]. A scalar is one row of
// one element. Keeps its counters, so that walking again allocates nothing.
class Rows {
 public:
  Rows(const Shape& shape, std::vector<std::vector<std::int64_t>> strides)
      : strides_(std::move(strides)), offsets_(strides_.size(), 0) {
    for (std::size_t d = 0; d + 1 < shape.rank(); ++d) sizes_.push_back(shape[d].size);
    index_.assign(sizes_.size(), 0);
  }

  // Calls row(offsets, index) for each: offsets[k] is the element offset in operand k, index the place in the outer dims.
  template <class Row>
  void each(const Row& row) {
    do row(offsets_.data(), index_.data());
    while (advance());
  }

 private:
  bool advance() {
    for (std::size_t d = sizes_.size(); d-- > 0;) {
      for (std::size_t k = 0; k < strides_.size(); ++k) offsets_[k] += strides_[k][d];
      if (++index_[d] < sizes_[d]) return true;
      for (std::size_t k = 0; k < strides_.size(); ++k) offsets_[k] -= strides_[k][d] * sizes_[d];
      index_[d] = 0;
    }
    return false;
  }

  std::vector<std::vector<std::int64_t>> strides_;
  std::vector<std::int64_t> sizes_, index_, offsets_;
};

inline std::int64_t row_length(const Shape& shape) { return shape.rank() == 0 ? 1 : shape[shape.rank() - 1].size; }
inline std::int64_t row_stride(const std::vector<std::int64_t>& strides) {
  return strides.empty() ? 0 : strides.back();
}

// to = from, element by element, dims matched by name; a dim that `from` lacks is repeated. Made before the first step:
// running it allocates nothing.
class ElementCopy {
 public:
  ElementCopy(const TensorView& from, const TensorView& to);

  // With the operand `offset` elements further on.
  void run(std::int64_t offset = 0);

 private:
  const void* from_;
  void* to_;
  DType dtype_;
  bool in_place_;  // it lies there already
  std::int64_t length_, from_step_, to_step_;
  Rows rows_;
};

// An ElementCopy that is run once: not for steps.
void copy_elements(const TensorView& from, const TensorView& to);

// A view of dense storage.
TensorView dense_view(void* data, DType dtype, const Shape& shape);

// How a value of the program lies, wherever that is.
TensorView unplaced_view(const Program& program, ValueId id, const ByValue<std::vector<std::int64_t>>& strides);

}  // namespace weft
