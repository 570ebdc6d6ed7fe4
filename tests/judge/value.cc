#include "judge/value.h"

#include <algorithm>
#include <cstring>

#include "language/shape_math.h"
#include "weft/error.h"

namespace weft::judge {

Value::Value(Shape s, DType d) : shape(std::move(s)), dtype(d) {
  const auto n = static_cast<std::size_t>(shape.elements());
  if (is_float(d)) f.assign(n, 0);
  else i.assign(n, 0);
  error.assign(n, 0);
}

std::int64_t wrapped(std::int64_t x, DType dtype) {
  switch (dtype) {
    case DType::kI32: return static_cast<std::int32_t>(static_cast<std::uint64_t>(x));
    case DType::kU32: return static_cast<std::uint32_t>(static_cast<std::uint64_t>(x));
    case DType::kU8: return static_cast<std::uint8_t>(static_cast<std::uint64_t>(x));
    case DType::kI8: return static_cast<std::int8_t>(static_cast<std::uint64_t>(x));
    case DType::kBool: return x != 0;
    default: return x;
  }
}

double Arithmetic::unit(DType dtype) const {
  switch (type_of(dtype)) {
    case DType::kF32: return 0x1p-24;
    case DType::kBF16: return 0x1p-8;
    case DType::kF16: return 0x1p-11;
    default: return 0x1p-53;
  }
}

double Arithmetic::inner(DType dtype) const { return std::min(unit(dtype), unit(DType::kF32)); }

double Arithmetic::least(DType dtype) const {
  switch (type_of(dtype)) {
    case DType::kF32:
    case DType::kBF16: return 0x1p-126;
    case DType::kF16: return 0x1p-14;
    default: return 0x1p-1022;
  }
}

double Arithmetic::most(DType dtype) const {
  switch (type_of(dtype)) {
    case DType::kF32: return std::numeric_limits<float>::max();
    case DType::kBF16: return 0x1.FEp127;
    case DType::kF16: return 65504;
    default: return std::numeric_limits<double>::max();
  }
}

double Arithmetic::rounded(double x, DType dtype) const {
  switch (type_of(dtype)) {
    case DType::kF32: return static_cast<float>(x);
    case DType::kBF16: return static_cast<float>(BF16(static_cast<float>(x)));
    case DType::kF16: return static_cast<float>(F16(static_cast<float>(x)));
    default: return x;
  }
}

double Arithmetic::with_flush(double v, double error, DType dtype) const {
  const double smallest = type_of(dtype) == DType::kF64 ? 0x1p-1022 : 0x1p-126;  // f16 is computed in f32
  return flushes && std::fabs(v) - error < smallest ? std::max(error, std::fabs(v)) : error;
}

namespace {

template <class T>
std::int64_t read_whole(const Array& array, std::size_t k) {
  T x;
  std::memcpy(&x, array.bytes() + k * sizeof(T), sizeof(T));
  return static_cast<std::int64_t>(x);
}

std::int64_t whole_at(const Array& array, std::size_t k) {
  switch (array.dtype()) {
    case DType::kI32: return read_whole<std::int32_t>(array, k);
    case DType::kI64: return read_whole<std::int64_t>(array, k);
    case DType::kU32: return read_whole<std::uint32_t>(array, k);
    case DType::kU8: return read_whole<std::uint8_t>(array, k);
    case DType::kI8: return read_whole<std::int8_t>(array, k);
    default: return static_cast<std::int64_t>(array.at(static_cast<std::int64_t>(k)));
  }
}

}  // namespace

Value value_of(const Array& array, DType dtype, const Arithmetic& arithmetic) {
  Value value(array.shape(), dtype);
  for (std::size_t k = 0; k < value.size(); ++k)
    if (value.is_real()) {
      value.f[k] = arithmetic.rounded(array.at(static_cast<std::int64_t>(k)), dtype);
      value.error[k] = arithmetic.with_flush(value.f[k], 0, dtype);
    } else {
      value.i[k] = wrapped(whole_at(array, k), dtype);
    }
  return value;
}

Walk::Walk(const Shape& over, const std::vector<const Shape*>& shapes) : first_(shapes.size(), 0) {
  std::vector<std::vector<std::int64_t>> dense;
  for (const Shape* shape : shapes) dense.push_back(dense_strides(*shape));
  for (const Dim& dim : over) {
    sizes_.push_back(dim.size);
    for (std::size_t j = 0; j < shapes.size(); ++j) {
      const auto position = shapes[j]->find(dim.name);
      strides_.push_back(position ? dense[j][*position] : 0);
    }
  }
}

}  // namespace weft::judge
