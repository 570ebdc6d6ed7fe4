// The numbers of the judge: a tensor's values, each with a bound on how far an engine's number may be from it.
//
// Values are computed in double, integers in their own dtype. Beside each float the judge keeps `error`, a running bound: an
// op adds what the errors of its operands can do to the result and what its own rounding can do, in an arithmetic of the given
// width. Rounding is relative to the magnitudes that the op really adds up, so the bound follows the graph's own sums: a
// sum of n terms errs by n units of the sum of their absolute values, in whatever order it is done.
// Numbers narrower than f32 are computed in f32 and rounded to their dtype once: so is each part of a sum that the engine
// may make of parts.
//   error 0         the engine has the same bits (a move, or one correctly rounded operation on exact operands);
//   error infinite  nothing is known: a jump (floor, a comparison, an index) whose operand may be on either side of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "weft/array.h"
#include "weft/dim.h"
#include "weft/dtype.h"

namespace weft::judge {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Value {
  Shape shape;
  DType dtype = DType::kF32;
  std::vector<double> f;        // floats
  std::vector<std::int64_t> i;  // integers and bools
  std::vector<double> error;    // integers and bools: 0 or unknown

  Value() = default;
  Value(Shape s, DType d);  // zeros
  bool is_real() const { return is_float(dtype); }
  std::size_t size() const { return error.size(); }
  bool known(std::size_t k) const { return error[k] == 0; }
};
using ValuePtr = std::shared_ptr<const Value>;

// An integer as its dtype holds it: the low bits.
std::int64_t wrapped(std::int64_t x, DType dtype);

// How an engine rounds.
struct Arithmetic {
  bool wide = true;      // every float is f64, as under compute_as; else as its dtype says
  bool flushes = false;  // subnormals are read and written as zeros, as XLA's CPU compiler does (docs/xla.md)

  DType type_of(DType dtype) const { return wide && is_float(dtype) ? DType::kF64 : dtype; }
  double unit(DType dtype) const;   // the largest relative error of one rounding
  double inner(DType dtype) const;  // … of the arithmetic that computes numbers of this dtype: f32 for narrower ones
  double least(DType dtype) const;  // the smallest normal number
  double most(DType dtype) const;   // the largest finite number
  double rounded(double x, DType dtype) const;
  // The error of a number that is read or written: all of it, if the number may be subnormal and subnormals are flushed.
  double with_flush(double v, double error, DType dtype) const;
};

// Writes results of one op. `error` is what comes from the operands.
class Writer {
 public:
  Writer(const Arithmetic& arithmetic, Value& y)
      : a_(arithmetic),
        y_(y),
        unit_(arithmetic.unit(y.dtype)),
        inner_(arithmetic.inner(y.dtype)),
        least_(arithmetic.least(y.dtype)),
        most_(arithmetic.most(y.dtype)) {}

  // A number that is moved, not computed.
  void moved(std::size_t k, const Value& x, std::size_t from) {
    if (y_.is_real()) y_.f[k] = x.f[from];
    else y_.i[k] = x.i[from];
    y_.error[k] = x.error[from];
  }
  // One correctly rounded operation.
  void rounded(std::size_t k, double v, double error) {
    if (error == kUnknown) finish(k, v, error);  // also of a NaN, whose rounding would make the sum below one
    else if (error == 0) finish(k, a_.rounded(v, y_.dtype), 0);
    else finish(k, v, error + unit_ * std::fabs(v) + subnormal());
  }
  // A function that is right to a few units.
  void function(std::size_t k, double v, double error) {
    finish(k, v, error == kUnknown ? error : error + (8 * inner_ + own()) * std::fabs(v) + least_);
  }
  // A sum of `count` terms of `1 + more` factors; `magnitude` is the sum of their absolute values. Whole numbers that fit
  // add up exactly. Narrow numbers are rounded where a processor has its part, where each of at most three axes has been
  // summed over, and between factors.
  void sum(std::size_t k, double v, double error, double magnitude, double count, double more, bool whole) {
    if (error == kUnknown) return finish(k, v, error);
    if (whole && error == 0 && magnitude <= 1 / unit_) return finish(k, v, 0);
    if (std::isfinite(magnitude) && magnitude > most_ && std::fabs(v) < magnitude) return finish(k, v, kUnknown);
    finish(k, v, error + ((count + more + 2) * inner_ + (4 + more) * own()) * magnitude + (count + more) * subnormal());
  }
  void exactly(std::size_t k, double v, double error) { finish(k, v, error); }
  void whole(std::size_t k, std::int64_t v, bool known) {
    y_.i[k] = wrapped(v, y_.dtype);
    y_.error[k] = known ? 0 : kUnknown;
  }
  double unit() const { return unit_; }
  double inner() const { return inner_; }
  // The rounding of a result to a dtype that is narrower than the arithmetic; 0 if it is not.
  double own() const { return inner_ < unit_ ? unit_ : 0; }

 private:
  double subnormal() const { return a_.flushes ? least_ : least_ * unit_; }
  // Past the largest number is infinity, and close to it either.
  void finish(std::size_t k, double v, double error) {
    if (std::isnan(error)) error = 0;
    if (std::isfinite(v) && std::isfinite(error) && std::fabs(v) + error >= most_) {
      if (std::fabs(v) - error > most_ * (1 + unit_)) v = v > 0 ? kUnknown : -kUnknown, error = 0;
      else if (error > 0 || std::fabs(v) > most_) error = kUnknown;
    }
    y_.f[k] = v;
    y_.error[k] = std::isfinite(v) || error == kUnknown ? a_.with_flush(v, error, y_.dtype) : 0;
  }

  const Arithmetic& a_;
  Value& y_;
  double unit_, inner_, least_, most_;
};

// The array's numbers, floats rounded to what the arithmetic makes of `dtype`.
Value value_of(const Array& array, DType dtype, const Arithmetic& arithmetic);

// Calls visit(const std::int64_t* at) for every index of `over`, row-major: at[j] is the element of the j-th shape whose
// indices by name are those of `over`; dims that a shape lacks are passed over.
class Walk {
 public:
  Walk(const Shape& over, const std::vector<const Shape*>& shapes);

  template <class Visit>
  void each(const Visit& visit) {
    std::vector<std::int64_t> index(sizes_.size(), 0);
    std::vector<std::int64_t> at = first_;
    const std::size_t rank = sizes_.size(), n = at.size();
    if (rank == 0) return visit(at.data());
    while (true) {
      const std::size_t last = rank - 1;
      for (std::int64_t k = 0; k < sizes_[last]; ++k) {
        visit(at.data());
        for (std::size_t j = 0; j < n; ++j) at[j] += strides_[last * n + j];
      }
      for (std::size_t j = 0; j < n; ++j) at[j] -= strides_[last * n + j] * sizes_[last];
      std::size_t d = last;
      while (d-- > 0) {
        for (std::size_t j = 0; j < n; ++j) at[j] += strides_[d * n + j];
        if (++index[d] < sizes_[d]) break;
        for (std::size_t j = 0; j < n; ++j) at[j] -= strides_[d * n + j] * sizes_[d];
        index[d] = 0;
      }
      if (d == static_cast<std::size_t>(-1)) return;
    }
  }
  // The stride of the j-th shape along a dim of `over`.
  std::int64_t stride(std::size_t d, std::size_t j) const { return strides_[d * first_.size() + j]; }

 private:
  std::vector<std::int64_t> sizes_, strides_, first_;
};

}  // namespace weft::judge
