#include "weft/array.h"

#include <cmath>
#include <cstring>

#include "base/dispatch.h"
#include "base/str.h"
#include "language/shape_math.h"
#include "weft/error.h"

namespace weft {

namespace {

void check_count(const Shape& shape, std::size_t count, const Place& where = "Array") {
  if (static_cast<std::size_t>(shape.elements()) != count)
    throw UserError(
        {.code = "array.value-count-mismatch",
         .what = str("an array of shape ", shape, " needs ", shape.elements(), " values, but ", count, " were given"),
         .where = where,
         .fix = "give as many values as the shape has elements, in row-major order"});
}

void check_index(const Array& array, std::int64_t index) {
  if (index < 0 || index >= array.elements())
    throw UserError({.code = "array.index-out-of-range",
                     .what = str("element ", index, " of an array of shape ", array.shape(), ", which has ",
                                 array.elements(), " elements"),
                     .where = "Array::at, number and set",
                     .fix = "give a row-major index from 0 to one less than the number of elements"});
}

std::vector<std::byte> zeros(const Shape& shape, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  try {
    return std::vector<std::byte>(bytes);
  } catch (const std::exception&) {
    throw RunError({.code = "array.no-memory",
                    .what = str("this machine does not give the ", bytes, " bytes of an array of shape ", shape),
                    .where = "Array",
                    .fix = "use a smaller array; a session holds large values in shards"});
  }
}

// The C++ type that stores the dtype.
const char* stored_as(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "float";
    case DType::kBF16: return "BF16";
    case DType::kF16: return "F16";
    case DType::kF64: return "double";
    case DType::kI32: return "std::int32_t";
    case DType::kI64: return "std::int64_t";
    case DType::kU32: return "std::uint32_t";
    case DType::kU8: return "std::uint8_t";
    case DType::kI8: return "std::int8_t";
    case DType::kBool: return "bool";
  }
  throw InternalError("a dtype outside its enum");
}

// The elements from `begin` on along the dims from `dim` on: the innermost dim without brackets if it is the only one.
void print_elements(std::ostream& out, const Array& array, std::size_t dim, std::int64_t begin, bool shortens) {
  constexpr std::int64_t kEdge = 3;
  const Shape& shape = array.shape();
  if (dim == shape.rank()) {
    out << array.number(begin);
    return;
  }
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < shape.rank(); ++d) stride *= shape[d].size;
  const std::int64_t size = shape[dim].size;
  for (std::int64_t i = 0; i < size; ++i) {
    if (shortens && size > 2 * kEdge && i == kEdge) {
      out << " …";
      i = size - kEdge;
    }
    if (i > 0) out << " ";
    const bool is_row = dim + 1 < shape.rank();
    if (is_row) out << "[";
    print_elements(out, array, dim + 1, begin + i * stride, shortens);
    if (is_row) out << "]";
  }
}

}  // namespace

Array::Array(Shape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype), owned_(zeros(shape_, dtype)) {}

Array::Array(Shape shape, const std::vector<float>& values) : Array(std::move(shape), DType::kF32) {
  check_count(shape_, values.size());
  std::memcpy(owned_.data(), values.data(), owned_.size());
}

Array::Array(Shape shape, const std::vector<double>& values, DType dtype) : Array(std::move(shape), dtype) {
  check_count(shape_, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) set(static_cast<std::int64_t>(i), values[i]);
}

Array::Array(Shape shape, const std::vector<std::int32_t>& values) : Array(std::move(shape), DType::kI32) {
  check_count(shape_, values.size());
  std::memcpy(owned_.data(), values.data(), owned_.size());
}

Array::Array(Shape shape, const std::vector<std::int64_t>& values) : Array(std::move(shape), DType::kI64) {
  check_count(shape_, values.size());
  std::memcpy(owned_.data(), values.data(), owned_.size());
}

Array Array::scalar(const Number& value, DType dtype) {
  Array array({}, dtype);
  array.set(0, value);
  return array;
}

Array Array::over(Shape shape, DType dtype, const void* values, std::size_t count, Site site) {
  check_count(shape, count, site);
  Array array;
  array.shape_ = std::move(shape);
  array.dtype_ = dtype;
  array.owned_.clear();
  array.wrapped_ = static_cast<const std::byte*>(values);
  return array;
}

void Array::own() {
  owned_.assign(wrapped_, wrapped_ + static_cast<std::size_t>(elements()) * size_of(dtype_));
  wrapped_ = nullptr;
}

void Array::check_stored_as(DType wanted, Site site) const {
  if (wanted == dtype_) return;
  throw UserError(
      {.code = "array.span-of-other-type",
       .what = str("span<", stored_as(wanted), "> of an array ", dtype_, " ", shape_),
       .where = site,
       .fix = str("write span<", stored_as(dtype_), ">(), or cast(DType) the array to ", wanted, " first")});
}

double Array::at(std::int64_t index) const {
  check_index(*this, index);
  return visit_dtype(dtype_, [&]<class T>() { return to_double(reinterpret_cast<const T*>(bytes())[index]); });
}

Number Array::number(std::int64_t index) const {
  check_index(*this, index);
  return visit_dtype(dtype_, [&]<class T>() -> Number {
    const T x = reinterpret_cast<const T*>(bytes())[index];
    if constexpr (std::is_integral_v<T>) return x;
    else return to_double(x);
  });
}

void Array::set(std::int64_t index, const Number& value) {
  check_index(*this, index);
  visit_dtype(dtype_, [&]<class T>() { reinterpret_cast<T*>(bytes())[index] = from_number<T>(value); });
}

double Array::item() const {
  if (elements() != 1)
    throw UserError(
        {.code = "array.item-of-several",
         .what = str("item() was called on an array of shape ", shape_, ", which has ", elements(), " elements"),
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
    throw UserError({.code = "array.bad-order",
                     .what = str("an array of shape ", shape_, " cannot be put in the order ", order),
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

std::ostream& operator<<(std::ostream& out, const Array& array) {
  constexpr std::int64_t kMost = 64;
  out << array.dtype() << " " << array.shape() << ": ";
  print_elements(out, array, 0, 0, array.elements() > kMost);
  return out;
}

std::string to_string(const Array& array) { return str(array); }

double relative_difference(const Array& a, const Array& b) {
  if (a.shape() != b.shape())
    throw UserError({.code = "array.shapes-differ",
                     .what = str("arrays of shapes ", a.shape(), " and ", b.shape(), " cannot be compared"),
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
