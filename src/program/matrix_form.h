// A contraction as matrix products: which dims are rows, columns, summed, and loops around the products.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/dim.h"
#include "weft/dtype.h"

namespace weft {

// Neighbouring dims that can be walked as one. A stride is 0 where the operand lacks them.
struct DimRun {
  std::int64_t size = 1, x = 0, y = 0, out = 0;
};

struct MatrixForm {
  DimRun m, n, k;              // of one product: out[m, n] = x[m, k] y[k, n]
  std::vector<DimRun> outer;   // one product for each index, each with its own results
  std::vector<DimRun> summed;  // products that are added up
  std::int64_t outers = 1, sums = 1;
  bool x_plain = true, y_plain = true, out_plain = true;  // whether a matrix has a stride of 1

  bool is_plain() const { return x_plain && y_plain && out_plain; }
  std::int64_t products() const { return outers * sums; }
};

// How a value lies: the stride of every dim, in elements.
struct Strided {
  const Shape& shape;
  const std::vector<std::int64_t>& strides;
};

// The largest runs become the matrices; the columns lie side by side in `out` if any dim of y's does.
MatrixForm matrix_form(const Strided& x, const Strided& y, const Strided& out);

// Whether y lies in panels of `lanes` columns, [panels, k in words, lanes, numbers of a word], and x's numbers side by side.
// Engines that have products with panels make all of the contraction in one product.
bool lies_in_panels(const MatrixForm& form, std::int64_t lanes, std::int64_t word);
// Numbers in a word of 32 bits.
std::int64_t numbers_of_word(DType dtype);

// Where the products of outer index `i` begin.
struct Offsets {
  std::int64_t x = 0, y = 0, out = 0;
};
Offsets offsets_at(const std::vector<DimRun>& runs, std::int64_t i);

}  // namespace weft
