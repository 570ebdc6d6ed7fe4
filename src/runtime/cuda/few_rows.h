// Products of few rows with a large matrix, as decoding makes them: the matrix is read once, as fast as memory gives it.
#pragma once

#include "runtime/cuda/epilogue.h"

namespace weft::cuda {

constexpr std::int64_t kMostFewRows = 32;

// Whether a contraction has at most kMostFewRows rows, is of bf16, and has the numbers of one sum side by side in both
// operands.
bool is_few_rows_product(const Work& work);
// Appends it, if it is one; with maps of what it gives, these in its place.
bool few_rows_product(const Work& work, const Epilogue* then = nullptr);

}  // namespace weft::cuda
