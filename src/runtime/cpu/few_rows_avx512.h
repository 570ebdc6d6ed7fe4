// The kernels of few_rows.cc for AVX-512 with products of bf16 and i8. Plain types only: few_rows_avx512.cc is compiled for
// that instruction set and must not share inline code with other files.
#pragma once

#include <cstdint>

#include "runtime/cpu/panels_avx512.h"

namespace weft::cpu::avx512 {

// b[k, n]: sizes and strides in elements.
struct Columns {
  const void* data;
  std::int64_t k, n, row, column;
};

// c[m, n] = or += a b, with b's rows side by side (b.row == 1). a's rows are `row` elements apart, its columns side by
// side. Sums are f32, of i8 they are i32.
void dots(Words kind, const void* a, std::int64_t row, std::int64_t m, const Columns& b, void* c, std::int64_t c_row,
          bool adds);

// The same for i8, many rows and either order of b: b.row or b.column is 1. `a`: from raise_rows(), in rows of words_of(b.k) words. `memory`: of
// kPanel * (words_of(b.k) or kMostWords, the smaller) words.
constexpr std::int64_t kPanel = kLanes * kMostPanels, kMostWords = 1024;
constexpr std::int64_t words_of(std::int64_t k) { return (k + 3) / 4; }
void panels(const std::int32_t* a, std::int64_t m, const Columns& b, std::int32_t* c, std::int64_t c_row, bool adds,
            std::int32_t* memory);

}  // namespace weft::cpu::avx512
