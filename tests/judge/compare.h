// An engine's numbers against the judge's.
#pragma once

#include <optional>
#include <string>

#include "judge/value.h"

namespace weft::judge {

struct Comparison {
  std::optional<std::string> difference = {};
  std::int64_t compared = 0;  // elements
  std::int64_t unknown = 0;   // elements of which the judge knows nothing
  std::int64_t loose = 0;     // elements whose error is larger than a hundredth of the largest number; bf16: an eighth
};

// Integers and bools must have the same bits. A float may be off by twice its error bound; beside that, as f64 by 1e-9 of
// itself and otherwise by four roundings. NaN and infinities must be the same.
Comparison compare(const Array& got, const Value& want, const Arithmetic& arithmetic);

}  // namespace weft::judge
