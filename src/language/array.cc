#include "weft/array.h"

#include <cmath>
#include <cstring>

#include "base/dispatch.h"
#include "base/str.h"
#include "language/shape_math.h"
#include "weft/error.h"

namespace weft {

namespace {

void check_count(const Shape& shape, std::size_t count) {
  if (static_cast<std::size_t>(shape.elements()) != count)
    throw UserError(
        {.what = str("an array of shape ", shape, " needs ", shape.elements(), " values, but ", count, " were given"),
         .where = "Array",
         .fix = "give as many values as the shape has elements, in row-major order"});
}

}  // namespace

Array::Array(Shape shape, DType dtype)
    : shape_(std::move(shape)), dtype_(dtype), data_(static_cast<std::size_t>(shape_.elements()) * size_of(dtype)) {}

Array::Array(Shape shape, const std::vector<float>& values) : Array(std::move(shape), DType::kF32) {
  check_count(shape_, values.size());
  std::memcpy(data_.data(), values.data(), data_.size());
}

Array::Array(Shape shape, const std::vector<double>& values, DType dtype) : Array(std::move(shape), dtype) {
  check_count(shape_, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
}

Array::Array(Shape shape, const std::vector<std::int32_t>& values) : Array(std::move(shape), DType::kI32) {
  check_count(shape_, values.size());
  std::memcpy(data_.data(), values.data(), data_.size());
}

Array::Array(Shape shape, const std::vector<std::int64_t>& values) : Array(std::move(shape), DType::kI64) {
  check_count(shape_, values.size());
  std::memcpy(data_.data(), values.data(), data_.size());
}

Array Array::scalar(const Number& value, DType dtype) {
  Array array({}, dtype);
  array.set(0, value);
  return array;
}

double Array::at(std::int64_t index) const {
  return visit_dtype(dtype_, [&]<class T>() { return to_double(reinterpret_cast<const T*>(data_.data())[index]); });
}

Number Array::number(std::int64_t index) const {
  return visit_dtype(dtype_, [&]<class T>() -> Number {
    const T x = reinterpret_cast<const T*>(data_.data())[index];
    if constexpr (std::is_integral_v<T>) return x;
    else return to_double(x);
  });
}

void Array::set(std::int64_t index, const Number& value) {
  visit_dtype(dtype_, [&]<class T>() { reinterpret_cast<T*>(data_.data())[index] = from_number<T>(value); });
}

double Array::item() const {
  if (elements() != 1)
    throw UserError(
        {.what = str("item() was called on an array of shape ", shape_, ", which has ", elements(), " elements"),
         .where = "Array::item",
         .fix = "reduce it to one element first, or read it with at(index)"});
  return at(0);
}

std::vector<double> Array::values() const {
  std::vector<double> result(static_cast<std::size_t>(elements()));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = at(static_cast<std::int64_t>(i));
  return result;
}

Array Array::cast(DType dtype) const { return dtype == dtype_ ? *this : Array(shape_, values(), dtype); }

Array Array::transposed(const Shape& order) const {
  if (order == shape_) return *this;
  if (!same_dims(order, shape_))
    throw UserError({.what = str("an array of shape ", shape_, " cannot be put in the order ", order),
                     .where = "Array::transposed",
                     .fix = "name the same dims with the same sizes"});
  Array result(order, dtype_);
  const std::vector<std::int64_t> strides = dense_strides(shape_);
  for (std::int64_t i = 0; i < elements(); ++i) {
    std::int64_t rest = i, from = 0;
    for (std::size_t d = order.rank(); d-- > 0; rest /= order[d].size)
      from += rest % order[d].size * strides[shape_.position(order[d].name)];
    result.set(i, number(from));
  }
  return result;
}

double relative_difference(const Array& a, const Array& b) {
  if (a.shape() != b.shape())
    throw UserError({.what = str("arrays of shapes ", a.shape(), " and ", b.shape(), " cannot be compared"),
                     .where = "relative_difference",
                     .fix = "compare arrays of one shape"});
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < b.elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) {
      if (std::isfinite(y)) largest = std::max(largest, std::fabs(y));
      continue;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    largest = std::max(largest, std::fabs(y));
    difference = std::max(difference, std::fabs(x - y));
  }
  return difference / (largest == 0 ? 1 : largest);
}

}  // namespace weft
