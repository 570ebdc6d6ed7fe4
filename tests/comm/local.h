// Typed memory of one processor and the numbers that the suites send: small integers, so that sums are exact in every
// dtype and any order, and values differ from rank to rank and from element to element.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "comm/wire.h"
#include "weft/dtype.h"

namespace weft::comm {

struct Bool {
  std::uint8_t byte = 0;
};

template <class T>
constexpr DType dtype_of_type() {
  if constexpr (std::is_same_v<T, float>) return DType::kF32;
  if constexpr (std::is_same_v<T, BF16>) return DType::kBF16;
  if constexpr (std::is_same_v<T, F16>) return DType::kF16;
  if constexpr (std::is_same_v<T, double>) return DType::kF64;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::kI32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::kI64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::kU32;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kU8;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::kI8;
  if constexpr (std::is_same_v<T, Bool>) return DType::kBool;
}

// Calls body with a value of the C++ type of the dtype.
template <class Body>
void with_type(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF32: return body(float{});
    case DType::kBF16: return body(BF16{});
    case DType::kF16: return body(F16{});
    case DType::kF64: return body(double{});
    case DType::kI32: return body(std::int32_t{});
    case DType::kI64: return body(std::int64_t{});
    case DType::kU32: return body(std::uint32_t{});
    case DType::kU8: return body(std::uint8_t{});
    case DType::kI8: return body(std::int8_t{});
    case DType::kBool: return body(Bool{});
  }
}

template <class T>
T from_small(int value) {
  if constexpr (std::is_same_v<T, Bool>) return {static_cast<std::uint8_t>(value % 2)};
  else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) return T(static_cast<float>(value));
  else return static_cast<T>(value);
}

// What rank sends as element i: 0 … 4, or for products 1 and 2.
template <class T>
T sent(int rank, std::size_t i, Reduce reduce = Reduce::kSum) {
  const int mixed = static_cast<int>((i * 7 + i / 5 + static_cast<std::size_t>(rank) * 3) % 5);
  return from_small<T>(reduce == Reduce::kProduct && !std::is_same_v<T, Bool> ? 1 + mixed % 2 : mixed);
}

inline float wide(BF16 x) { return static_cast<float>(x); }
inline float wide(F16 x) { return static_cast<float>(x); }

// The rule of Reduce for two elements, written without vectors.
template <class T>
T combine(Reduce reduce, T a, T b) {
  if (reduce == Reduce::kMax) return a != a ? a : b != b ? b : a < b ? b : a;
  if (reduce == Reduce::kMin) return a != a ? a : b != b ? b : b < a ? b : a;
  if constexpr (std::is_floating_point_v<T>) {
    return reduce == Reduce::kSum ? a + b : a * b;
  } else {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<T>(reduce == Reduce::kSum ? x + y : x * y);
  }
}

// element(rank) for ranks 0 … size - 1, reduced in rank order and rounded once.
template <class T, class Element>
T reduced(Reduce reduce, int size, Element element) {
  if constexpr (std::is_same_v<T, Bool>) {
    const bool any = reduce == Reduce::kSum || reduce == Reduce::kMax;
    bool result = !any;
    for (int r = 0; r < size; ++r) result = any ? result || element(r).byte != 0 : result && element(r).byte != 0;
    return {static_cast<std::uint8_t>(result)};
  } else if constexpr (std::is_same_v<T, BF16> || std::is_same_v<T, F16>) {
    float result = wide(element(0));
    for (int r = 1; r < size; ++r) result = combine(reduce, result, wide(element(r)));
    return T(result);
  } else {
    T result = element(0);
    for (int r = 1; r < size; ++r) result = combine(reduce, result, element(r));
    return result;
  }
}

// An array in memory of the wire.
template <class T>
class Local {
 public:
  Local(Wire& wire, ProcessorId processor, std::size_t count)
      : memory_(allocate(wire, processor, count * sizeof(T))), count_(count) {}

  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  T& operator[](std::size_t i) const { return data()[i]; }
  std::size_t count() const { return count_; }
  operator Buffer() const { return {data(), count_, dtype_of_type<T>()}; }
  operator ConstBuffer() const { return {data(), count_, dtype_of_type<T>()}; }
  Buffer part(std::size_t begin, std::size_t count) const { return {data() + begin, count, dtype_of_type<T>()}; }

 private:
  Memory memory_;
  std::size_t count_;
};

}  // namespace weft::comm
