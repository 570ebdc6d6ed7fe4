// A contraction seen as products of matrices: which dims are rows, columns and summed, and which are loops around them.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/backend.h"

namespace weft::cpu {

// Neighbouring dims that can be walked as one. A stride is 0 where the operand lacks them.
struct Run {
  std::int64_t size = 1, x = 0, y = 0, out = 0;
};

struct MatrixForm {
  Run m, n, k;              // of one product: out[m, n] = x[m, k] y[k, n]
  std::vector<Run> outer;   // one product for each index, each with its own results
  std::vector<Run> summed;  // products that are added up
  std::int64_t outers = 1, sums = 1;
  bool x_plain = true, y_plain = true, out_plain = true;  // whether a matrix has a stride of 1
};

// The largest runs become the matrices; the columns lie side by side in `out` if any dim of y's does.
MatrixForm matrix_form(const TensorView& x, const TensorView& y, const TensorView& out);

// Where the products of outer index `i` begin.
struct Offsets {
  std::int64_t x = 0, y = 0, out = 0;
};
Offsets offsets_at(const std::vector<Run>& runs, std::int64_t i);

}  // namespace weft::cpu
