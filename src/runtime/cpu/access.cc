#include "runtime/cpu/access.h"

#include <algorithm>

#include "base/index.h"

namespace weft::cpu {

Access::Access(const TensorView& view, std::span<const Dim> rows, std::span<const Dim> cols)
    : data_(static_cast<std::byte*>(view.data)),
      dtype_(view.dtype),
      element_bytes_(static_cast<std::int64_t>(weft::size_of(view.dtype))),
      load_(load_op(view.dtype)),
      store_(store_op(view.dtype)),
      rows_(merged(view, rows)) {
  if (!rows_.empty()) {
    row_run_ = rows_.back().size;
    row_stride_ = rows_.back().stride;
  }
  std::vector<Radix> columns = merged(view, cols);
  if (!columns.empty()) {
    column_run_ = columns.back().size;
    column_step_ = columns.back().stride;
    columns.pop_back();
  }
  segments_ = {0};
  for (const Radix& radix : columns) {
    std::vector<std::int64_t> finer;
    for (std::int64_t begin : segments_)
      for (std::int64_t i = 0; i < radix.size; ++i) finer.push_back(begin + i * radix.stride);
    segments_ = std::move(finer);
  }
  plain_ = is_lane(dtype_) && segments_.size() == 1 && (column_step_ == 1 || column_run_ == 1);
}

// Dims of size one are left out; those that are one run of memory are one.
std::vector<Access::Radix> Access::merged(const TensorView& view, std::span<const Dim> dims) {
  std::vector<Radix> radices;
  for (const Dim& dim : dims) {
    if (dim.size == 1) continue;
    const auto at = view.shape.find(dim.name);
    const std::int64_t stride = at ? view.strides[*at] : 0;
    if (!radices.empty() && radices.back().stride == stride * dim.size)
      radices.back() = {radices.back().size * dim.size, stride};
    else radices.push_back({dim.size, stride});
  }
  return radices;
}

std::int64_t Access::offset_of_row(std::int64_t row) const {
  if (rows_.size() == 1) return row * rows_[0].stride;
  std::int64_t offset = 0;
  for (std::size_t d = rows_.size(); d-- > 0; row /= rows_[d].size) offset += row % rows_[d].size * rows_[d].stride;
  return offset;
}

template <class Part>
void Access::each_part(std::int64_t col, std::int64_t cols, const Part& part) const {
  for (std::int64_t done = 0; done < cols;) {
    const std::int64_t segment = (col + done) / column_run_, first = (col + done) % column_run_;
    const std::int64_t count = std::min(cols - done, column_run_ - first);
    part(segments_[weft::at(segment)] + first * column_step_, done, count);
    done += count;
  }
}

void Access::load_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, void* to,
                       std::int64_t pitch) const {
  const auto lane = static_cast<std::int64_t>(size_of(lane_of(dtype_)));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = offset_of_row(row + r);
    each_part(col, cols, [&](std::int64_t offset, std::int64_t done, std::int64_t count) {
      load_(address(begin + offset), column_step_, static_cast<std::byte*>(to) + (r * pitch + done) * lane,
            static_cast<std::size_t>(count));
    });
  }
}

void Access::store_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, const void* from,
                        std::int64_t pitch) const {
  const auto lane = static_cast<std::int64_t>(size_of(lane_of(dtype_)));
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t begin = offset_of_row(row + r);
    each_part(col, cols, [&](std::int64_t offset, std::int64_t done, std::int64_t count) {
      store_(static_cast<const std::byte*>(from) + (r * pitch + done) * lane, address(begin + offset), column_step_,
             static_cast<std::size_t>(count));
    });
  }
}

void Access::load_rows(std::int64_t row, std::int64_t rows, void* to) const {
  const auto lane = static_cast<std::int64_t>(size_of(lane_of(dtype_)));
  for (std::int64_t done = 0; done < rows;) {
    const std::int64_t count = std::min(rows - done, row_run_ - (row + done) % row_run_);
    load_(address(offset_of_row(row + done)), row_stride_, static_cast<std::byte*>(to) + done * lane,
          static_cast<std::size_t>(count));
    done += count;
  }
}

void Access::store_rows(std::int64_t row, std::int64_t rows, const void* from) const {
  const auto lane = static_cast<std::int64_t>(size_of(lane_of(dtype_)));
  for (std::int64_t done = 0; done < rows;) {
    const std::int64_t count = std::min(rows - done, row_run_ - (row + done) % row_run_);
    store_(static_cast<const std::byte*>(from) + done * lane, address(offset_of_row(row + done)), row_stride_,
           static_cast<std::size_t>(count));
    done += count;
  }
}

}  // namespace weft::cpu
