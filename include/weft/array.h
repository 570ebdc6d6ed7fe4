// Array: numbers on the host, dense in the row-major order of their shape. The inputs and results of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/number.h"

namespace weft {

class Array {
 public:
  Array() = default;                                     // an f32 scalar 0
  Array(Shape shape, DType dtype);                       // zeros
  Array(Shape shape, const std::vector<float>& values);  // UserError if the count differs from the shape's
  Array(Shape shape, const std::vector<double>& values, DType dtype);
  Array(Shape shape, const std::vector<std::int32_t>& values);
  Array(Shape shape, const std::vector<std::int64_t>& values);
  static Array scalar(const Number& value, DType dtype = DType::kF32);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::byte* bytes() { return data_.data(); }
  const std::byte* bytes() const { return data_.data(); }

  // One element by its row-major index. set() rounds to the dtype: integers towards zero and to the ends of their
  // range. A double may lose digits of an i64, a Number does not.
  double at(std::int64_t index) const;
  Number number(std::int64_t index) const;
  void set(std::int64_t index, const Number& value);
  double item() const;  // of a scalar
  std::vector<double> values() const;
  Array cast(DType dtype) const;
  Array transposed(const Shape& order) const;  // the same dims in another order

 private:
  Shape shape_;
  DType dtype_ = DType::kF32;
  std::vector<std::byte> data_ = std::vector<std::byte>(4);
};

// The largest |a - b| over the largest |b| (1 if b is all zero). UserError if the shapes differ.
double relative_difference(const Array& a, const Array& b);

}  // namespace weft
