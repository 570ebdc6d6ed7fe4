// How an operand or result lies under the rows and columns of a sweep.
#pragma once

#include <span>
#include <vector>

#include "program/fusible.h"
#include "runtime/host/kernel.h"
#include "runtime/cpu/tile_convert.h"

namespace weft::cpu {

class Access {
 public:
  Access(const TensorView& view, std::span<const Dim> rows, std::span<const Dim> cols);

  DType dtype() const { return dtype_; }
  // Columns lie side by side, as lanes: a loop may work on the memory itself.
  bool plain() const { return plain_; }
  // The same of values per row, within a run of rows, and of scalars.
  bool plain_rows() const { return is_lane(dtype_) && (row_stride_ == 1 || row_run_ == 1); }
  bool plain_scalar() const { return is_lane(dtype_); }
  bool one_column_run() const { return segments_.size() == 1; }
  // So many rows, from a multiple of it on, lie row_stride() apart.
  std::int64_t row_run() const { return row_run_; }
  std::int64_t row_stride() const { return row_stride_; }

  std::int64_t offset_of_row(std::int64_t row) const;
  // Of a plain access.
  std::byte* at(std::int64_t row, std::int64_t col) const { return address(offset_of_row(row) + col); }
  const void* data() const { return data_; }
  // Columns lie side by side, whatever the dtype; where one of them lies.
  bool is_dense_in_columns() const { return segments_.size() == 1 && (column_step_ == 1 || column_run_ == 1); }
  const std::byte* address_of(std::int64_t row, std::int64_t col) const { return address(offset_of_row(row) + col); }
  std::int64_t element_bytes() const { return element_bytes_; }

  // Tiles of full values, to and from lanes whose rows are `pitch` apart.
  void load_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, void* to,
                 std::int64_t pitch) const;
  void store_tile(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols, const void* from,
                  std::int64_t pitch) const;
  // Values per row, per column, and scalars.
  void load_rows(std::int64_t row, std::int64_t rows, void* to) const;
  void store_rows(std::int64_t row, std::int64_t rows, const void* from) const;
  void load_columns(std::int64_t col, std::int64_t cols, void* to) const { load_tile(0, 1, col, cols, to, 0); }
  void store_columns(std::int64_t col, std::int64_t cols, const void* from) const {
    store_tile(0, 1, col, cols, from, 0);
  }

 private:
  struct Radix {
    std::int64_t size, stride;
  };
  static std::vector<Radix> merged(const TensorView& view, std::span<const Dim> dims);
  std::byte* address(std::int64_t element) const { return data_ + element * element_bytes_; }
  // Calls part(offset of its first element, its first column, its columns) for each run of columns within a range.
  template <class Part>
  void each_part(std::int64_t col, std::int64_t cols, const Part& part) const;

  std::byte* data_;
  DType dtype_;
  std::int64_t element_bytes_;
  LoadOp load_;
  StoreOp store_;
  std::vector<Radix> rows_;  // outermost first
  std::int64_t row_run_ = 1, row_stride_ = 0;
  std::int64_t column_run_ = 1, column_step_ = 0;
  std::vector<std::int64_t> segments_;  // where each run of columns begins
  bool plain_ = false;
};

}  // namespace weft::cpu
