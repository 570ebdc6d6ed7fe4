#include "runtime/cpu/few_rows.h"

#include <algorithm>

#include "runtime/cpu/few_rows_avx512.h"
#include "runtime/cpu/panel_contract.h"
#include "weft/error.h"

namespace weft::cpu {

namespace {

using avx512::Words;

// Where oneDNN overtakes dots(), measured with 256 to 1,408 columns and rows of b.
constexpr std::int64_t kMostDotRows = 12, kMostI8DotRows = 8;

bool has_avx512() { return panel_lanes() > 0; }

Words words_of(DType dtype) {
  return dtype == DType::kF32 ? Words::kF32 : dtype == DType::kBF16 ? Words::kBF16 : Words::kI8;
}

bool by_dots(const ProductShape& s) {
  return s.a_column == 1 && s.b_row == 1 && s.m <= (s.in == DType::kI8 ? kMostI8DotRows : kMostDotRows);
}

bool by_panels(const ProductShape& s) { return s.a_column == 1 && (s.b_row == 1 || s.b_column == 1); }

// i8 on CPUs without AVX-512: plain sums, which the compiler makes vectors of where b's rows lie side by side.
void i8_product(const ProductShape& s, const std::int8_t* a, const std::int8_t* b, std::int32_t* c) {
  for (std::int64_t i = 0; i < s.m; ++i)
    for (std::int64_t j = 0; j < s.n; ++j) {
      std::int32_t sum = s.adds ? c[i * s.c_row + j] : 0;
      for (std::int64_t k = 0; k < s.k; ++k)
        sum += std::int32_t{a[i * s.a_row + k * s.a_column]} * b[k * s.b_row + j * s.b_column];
      c[i * s.c_row + j] = sum;
    }
}

}  // namespace

bool has_few_rows_product(const ProductShape& s) {
  if (s.in == DType::kI8) return s.out == DType::kI32;
  return has_avx512() && (s.in == DType::kF32 || s.in == DType::kBF16) && s.out == DType::kF32 && by_dots(s);
}

std::size_t few_rows_scratch_bytes(const ProductShape& s) {
  if (!has_avx512() || by_dots(s) || !by_panels(s)) return 0;
  const std::int64_t words = avx512::words_of(s.k);
  return static_cast<std::size_t>(4 * (s.m * words + avx512::kPanel * std::min(words, avx512::kMostWords)));
}

void few_rows_product(const ProductShape& s, const void* a, const void* b, void* c, void* scratch) {
  const avx512::Columns columns{b, s.k, s.n, s.b_row, s.b_column};
  const auto* bytes = static_cast<const std::int8_t*>(a);
  if (has_avx512() && by_dots(s)) {
    avx512::dots(words_of(s.in), a, s.a_row, s.m, columns, c, s.c_row, s.adds);
  } else if (has_avx512() && by_panels(s)) {
    const std::int64_t words = avx512::words_of(s.k);
    auto* rows = static_cast<std::int32_t*>(scratch);
    avx512::raise_rows(static_cast<const char*>(a), s.a_row, s.m, s.k, reinterpret_cast<char*>(rows), 4 * words);
    avx512::panels(rows, s.m, columns, static_cast<std::int32_t*>(c), s.c_row, s.adds, rows + s.m * words);
  } else {
    i8_product(s, bytes, static_cast<const std::int8_t*>(b), static_cast<std::int32_t*>(c));
  }
}

}  // namespace weft::cpu
