// Products of few rows with a large matrix, as decoding makes them: the matrix is read once, as fast as memory gives it.
#pragma once

#include "program/matrix_form.h"
#include "runtime/cuda/work.h"

namespace weft::cuda {

constexpr std::int64_t kMostFewRows = 32;

// Appends the product if it has at most kMostFewRows rows, is of bf16, and the numbers of one sum lie side by side in both
// operands. `form`: of the contraction.
bool few_rows_product(const Work& work, const MatrixForm& form);

}  // namespace weft::cuda
