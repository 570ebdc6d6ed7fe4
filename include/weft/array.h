// Array: numbers on the host, dense in the row-major order of their shape. The inputs and results of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/number.h"
#include "weft/site.h"

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

  // An array over the caller's memory, without a copy: `values` are its elements in row-major order. The caller keeps
  // the memory valid and unchanged as long as the array, a copy of it, or a run that was given one of them exists; a
  // run ends when run() or PendingRun::get() returns. Copies of the array share the memory. The first change of an
  // array (set(), span() or bytes() of a non-const array) copies the memory into the array; the caller's memory never
  // changes. UserError if the number of values differs from the shape's.
  template <class T>
  static Array wrap(Shape shape, std::span<T> values, Site site = Site::current()) {
    return over(std::move(shape), kDTypeOf<std::remove_const_t<T>>, values.data(), values.size(), site);
  }
  template <class T>
  static Array wrap(Shape shape, const std::vector<T>& values, Site site = Site::current()) {
    return wrap(std::move(shape), std::span<const T>(values), site);
  }
  template <class T>
  static Array wrap(Shape shape, const std::vector<T>&& values, Site site = Site::current()) = delete;
  // An array over the memory of this array, like wrap(): run({{x, images.view()}}) copies nothing.
  Array view() const { return over(shape_, dtype_, bytes(), static_cast<std::size_t>(elements()), Site::current()); }

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }

  // The elements in row-major order, for example span<float>(). UserError if T does not store the array's dtype. Valid
  // until the array is assigned, moved or destroyed.
  template <class T>
  std::span<const T> span(Site site = Site::current()) const {
    check_stored_as(kDTypeOf<T>, site);
    return {reinterpret_cast<const T*>(bytes()), static_cast<std::size_t>(elements())};
  }
  template <class T>
  std::span<T> span(Site site = Site::current()) {
    check_stored_as(kDTypeOf<T>, site);
    return {reinterpret_cast<T*>(bytes()), static_cast<std::size_t>(elements())};
  }
  std::byte* bytes() {
    if (wrapped_) own();
    return owned_.data();
  }
  const std::byte* bytes() const { return wrapped_ ? wrapped_ : owned_.data(); }

  // One element by its row-major index; UserError for an index that no element has. set() rounds to the dtype: integers
  // towards zero and to the ends of their range. A double may lose digits of an i64, a Number does not.
  double at(std::int64_t index) const;
  Number number(std::int64_t index) const;
  void set(std::int64_t index, const Number& value);
  double item() const;  // of a scalar
  std::vector<double> values() const;
  Array cast(DType dtype) const;
  Array transposed(const Shape& order) const;  // the same dims in another order

 private:
  static Array over(Shape shape, DType dtype, const void* values, std::size_t count, Site site);
  void check_stored_as(DType wanted, Site site) const;
  void own();  // copies the wrapped memory

  Shape shape_;
  DType dtype_ = DType::kF32;
  std::vector<std::byte> owned_ = std::vector<std::byte>(4);
  const std::byte* wrapped_ = nullptr;  // the caller's memory; null: the elements are in owned_
};

// For people: dtype, shape and elements, "f32 [batch=2 pixel=3]: [1 2 3] [4 5 6]". If there are more than 64 elements,
// dims longer than 6 show their first three and last three indices.
std::string to_string(const Array& array);
std::ostream& operator<<(std::ostream& out, const Array& array);

// The largest |a - b| over the largest |b| (1 if b is all zero). UserError if the shapes differ.
double relative_difference(const Array& a, const Array& b);

}  // namespace weft
