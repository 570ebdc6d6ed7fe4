// The table of pointwise functions, made of the entries of pointwise-inl.h: what passes and engines know of a function by
// its name. Floats are computed in double here and rounded to their dtype by the caller; integers in int64, wrapping;
// bools are 0 and 1.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/dtype.h"

namespace weft {

namespace pointwise {

// What a function takes: its operands have one dtype of these kinds.
enum Takes : std::uint8_t { kFloats = 1, kIntegers = 2, kBools = 4, kNumbers = kFloats | kIntegers, kAny = 7 };
// What it gives: the dtype of its operands, or bool.
enum class Gives : std::uint8_t { kSame, kTruth };

// What is true of a function for all numbers of every dtype it takes, NaN and infinities among them, unless said
// otherwise. program/partial.h and program/passes/fold_map.h say what follows of it.
enum Algebra : std::uint32_t {
  kNone = 0,
  // Sums. All operands that are sums together: f(a + b, c + d) = f(a, c) + f(b, d).
  kAdditive = 1 << 0,
  kLinearInEach = 1 << 1,   // in one operand, while the other stays
  kLinearInFirst = 1 << 2,  // in the first operand, while the second stays
  // Order. x <= y gives f(x) <= f(y), and NaN gives NaN and nothing else does.
  kIncreasing = 1 << 3,
  kShiftsFirst = 1 << 4,   // increasing in the first operand, of floats, while the second is finite and stays
  kShiftsSecond = 1 << 5,  // in the second, while the first is finite and stays
  kScales = 1 << 6,        // in either, of floats, while the other is finite, above zero and stays
  kJoinsMax = 1 << 7,      // the larger: idempotent, associative, increasing in each
  kJoinsMin = 1 << 8,      // the smaller
  // Folding. One correctly rounded operation: of literals it gives the same number on every engine.
  kRoundsOnce = 1 << 9,
  kIdentity = 1 << 10,      // f(x) = x
  kUndoesItself = 1 << 11,  // f(f(x)) = x
  kZeroFirst = 1 << 12,     // f(0, x) = x
  kZeroSecond = 1 << 13,    // f(x, 0) = x
  kOneFirst = 1 << 14,      // f(1, x) = x
  kOneSecond = 1 << 15,     // f(x, 1) = x
};

}  // namespace pointwise

struct Pointwise {
  std::string_view name;
  int arity = 1;
  std::uint8_t takes = 0;
  pointwise::Gives gives = pointwise::Gives::kSame;
  double flops = 1;  // of an element: 8 for a transcendental function
  std::uint32_t algebra = pointwise::kNone;
  // Null where it takes no such numbers.
  double (*f1)(double) = nullptr;
  double (*f2)(double, double) = nullptr;
  std::int64_t (*i1)(std::int64_t) = nullptr;
  std::int64_t (*i2)(std::int64_t, std::int64_t) = nullptr;

  bool is(pointwise::Algebra property) const { return (algebra & property) != 0; }
  bool takes_dtype(DType dtype) const {
    using namespace pointwise;
    return (takes & (is_float(dtype) ? kFloats : dtype == DType::kBool ? kBools : kIntegers)) != 0;
  }
  bool gives_truth() const { return gives == pointwise::Gives::kTruth; }
  DType result(DType operands) const { return gives_truth() ? DType::kBool : operands; }
};

// All of them, in the order of pointwise-inl.h. "select" and "cast" are no pointwise functions: they belong to the map.
std::span<const Pointwise> pointwise_functions();
// Null if there is none.
const Pointwise* find_pointwise(std::string_view name);

// Why `name` cannot be applied to operands of these dtypes to give `result`, with the nearest name if it is unknown;
// empty if it can.
std::string pointwise_misuse(std::string_view name, const std::vector<DType>& operands, DType result);

}  // namespace weft
