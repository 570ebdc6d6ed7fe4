#include "judge/compare.h"

#include <algorithm>

#include "base/str.h"

namespace weft::judge {

namespace {

bool is_close(double got, double want, double error, double relative, double least) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::fabs(got - want) <= 2 * error + relative * std::fabs(want) + least;
}

double largest_of(const Value& x) {
  double most = 0;
  for (double v : x.f)
    if (std::isfinite(v)) most = std::max(most, std::fabs(v));
  return most;
}

}  // namespace

Comparison compare(const Array& got, const Value& want, const Arithmetic& arithmetic) {
  Comparison result;
  const DType dtype = arithmetic.type_of(want.dtype);
  if (got.dtype() != dtype || got.shape() != want.shape) {
    result.difference = str("is ", got.dtype(), " ", got.shape(), ", not ", dtype, " ", want.shape);
    return result;
  }
  const double relative = dtype == DType::kF64 ? 1e-9 : 4 * arithmetic.unit(dtype);
  const double least = arithmetic.least(dtype), largest = largest_of(want);
  const double loose = std::max(0.01, 32 * arithmetic.unit(dtype)) * largest;
  const Value whole = value_of(got, want.dtype, Arithmetic{true});
  for (std::size_t k = 0; k < want.size(); ++k) {
    ++result.compared;
    if (want.error[k] == kUnknown) {
      ++result.unknown;
      continue;
    }
    if (want.error[k] > loose) ++result.loose;
    const bool same =
        want.is_real() ? is_close(whole.f[k], want.f[k], want.error[k], relative, least) : whole.i[k] == want.i[k];
    if (same || result.difference) continue;
    result.difference = want.is_real() ? str(want.shape, " at element ", k, ": ", whole.f[k], ", not ", want.f[k],
                                             " within ", want.error[k], "; the largest is ", largest)
                                       : str(want.shape, " at element ", k, ": ", whole.i[k], ", not ", want.i[k]);
  }
  return result;
}

}  // namespace weft::judge
