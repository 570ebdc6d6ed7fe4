// Products of few rows, as decoding has them: c[m, n] = or += a[m, k] b[k, n]. oneDNN's kernels are made for many rows; with
// few rows the time goes into reading b once, at the speed of memory.
#pragma once

#include <cstddef>

#include "runtime/cpu/product.h"

namespace weft::cpu {

// Whether the product is made here: i8 with sums in i32, of any number of rows; f32 and bf16 with sums in f32, if there are so
// few rows that it is faster than oneDNN, b's rows and a's columns lie side by side, and the CPU has AVX-512.
bool has_few_rows_product(const ProductShape& shape);

std::size_t few_rows_scratch_bytes(const ProductShape& shape);

// c = or += a b, on one thread.
void few_rows_product(const ProductShape& shape, const void* a, const void* b, void* c, void* scratch);

}  // namespace weft::cpu
