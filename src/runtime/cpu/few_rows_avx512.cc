// dots() adds along k in vectors, and across their lanes at the end. It reads b from its begin to its end, the fastest way
// through memory. panels() brings 64 columns of b into panels (panels_avx512.h) in cache: no sums across lanes, which many
// rows would repeat.
#include "runtime/cpu/few_rows_avx512.h"

#include <immintrin.h>

namespace weft::cpu::avx512 {

namespace {

constexpr int kDotRows = 6;
constexpr std::int64_t kRowsAtOnce = 2 * kDotRows;
constexpr std::int64_t kAhead = 8192;  // bytes of b that are on their way while others are multiplied
constexpr std::int64_t kEach = 4;      // numbers of i8 in a word

constexpr std::int64_t bytes_of(Words kind) { return kind == Words::kF32 ? 4 : kind == Words::kBF16 ? 2 : 1; }

// Sums in lanes: every lane adds the products of its word. Plain vectors, so that the compiler keeps them in registers.
template <Words kKind>
struct Sum;

template <>
struct Sum<Words::kF32> {
  using V = __m512;
  using Number = float;
  static V zero() { return _mm512_setzero_ps(); }
  static V add(V sum, __m512i a, __m512i b) {
    return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
  static V plus(V a, V b) { return _mm512_add_ps(a, b); }
  static float total(V sum) { return _mm512_reduce_add_ps(sum); }
};

template <>
struct Sum<Words::kBF16> : Sum<Words::kF32> {
  static V add(V sum, __m512i a, __m512i b) { return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b); }
};

// The instruction takes unsigned numbers of one operand. So b is raised by 128, and 128 times the sum of a row is taken off.
template <>
struct Sum<Words::kI8> {
  using V = __m512i;
  using Number = std::int32_t;
  static V zero() { return _mm512_setzero_si512(); }
  static V add(V sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, b, a); }
  static V plus(V a, V b) { return _mm512_add_epi32(a, b); }
  static std::int32_t total(V sum) { return _mm512_reduce_add_epi32(sum); }
};

template <Words kKind>
__m512i raised(__m512i b) {
  return kKind == Words::kI8 ? _mm512_xor_si512(b, _mm512_set1_epi8(static_cast<char>(0x80))) : b;
}

__mmask64 bytes_there(std::int64_t left) { return left >= 64 ? ~0ull : (1ull << left) - 1; }

// 128 times the sum of a row of i8.
std::int32_t raised_by(const char* row, std::int64_t bytes) {
  __m512i sum = _mm512_setzero_si512();
  for (std::int64_t i = 0; i < bytes; i += 64)
    sum = _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(static_cast<char>(0x80)),
                              _mm512_maskz_loadu_epi8(bytes_there(bytes - i), row + i));
  return _mm512_reduce_add_epi32(sum);
}

// --- dots ---

// `off`: what is taken off the sums, of i8.
template <Words kKind, int kRows>
void dot_column(const char* a, std::int64_t row, const char* column, std::int64_t bytes, const std::int32_t* off,
                char* c, std::int64_t c_row, bool adds) {
  using S = Sum<kKind>;
  using Number = typename S::Number;
  constexpr int kSums = kRows <= 2 ? 4 : kRows <= 4 ? 2 : 1;  // of a row, so that no addition waits for the one before
  typename S::V sums[kRows][kSums];
  for (auto& of_row : sums)
    for (auto& sum : of_row) sum = S::zero();
  std::int64_t i = 0;
  for (; i + 64 * kSums <= bytes; i += 64 * kSums)
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) {
      _mm_prefetch(column + i + 64 * s + kAhead, _MM_HINT_T1);
      const __m512i y = raised<kKind>(_mm512_loadu_si512(column + i + 64 * s));
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][s] = S::add(sums[r][s], _mm512_loadu_si512(a + r * row + i + 64 * s), y);
    }
  for (; i < bytes; i += 64) {
    const __mmask64 there = bytes_there(bytes - i);
    const __m512i y = raised<kKind>(_mm512_maskz_loadu_epi8(there, column + i));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sums[r][0] = S::add(sums[r][0], _mm512_maskz_loadu_epi8(there, a + r * row + i), y);
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    typename S::V sum = sums[r][0];
#pragma GCC unroll 4
    for (int s = 1; s < kSums; ++s) sum = S::plus(sum, sums[r][s]);
    Number* to = reinterpret_cast<Number*>(c) + r * c_row;
    Number total = S::total(sum);
    if constexpr (kKind == Words::kI8) total -= off[r];
    *to = adds ? *to + total : total;
  }
}

// Rows in blocks, for each column: only the first block reads it from memory. At most kRowsAtOnce rows.
template <Words kKind>
void dot_rows(const char* a, std::int64_t row, std::int64_t m, const Columns& b, char* c, std::int64_t c_row,
              bool adds) {
  using Call =
      void (*)(const char*, std::int64_t, const char*, std::int64_t, const std::int32_t*, char*, std::int64_t, bool);
  static constexpr Call kCalls[kDotRows] = {dot_column<kKind, 1>, dot_column<kKind, 2>, dot_column<kKind, 3>,
                                            dot_column<kKind, 4>, dot_column<kKind, 5>, dot_column<kKind, 6>};
  const std::int64_t each = bytes_of(kKind);
  std::int32_t off[kRowsAtOnce] = {};
  if (kKind == Words::kI8)
    for (std::int64_t i = 0; i < m; ++i) off[i] = raised_by(a + i * row, b.k);
  for (std::int64_t n = 0; n < b.n; ++n)
    for (std::int64_t i = 0; i < m; i += kDotRows)
      kCalls[(m - i < kDotRows ? m - i : kDotRows) - 1](a + i * row * each, row * each,
                                                        static_cast<const char*>(b.data) + n * b.column * each,
                                                        b.k * each, off + i, c + 4 * (i * c_row + n), c_row, adds);
}

// --- panels ---

__mmask16 lanes(std::int64_t n) { return n >= 16 ? 0xffff : static_cast<__mmask16>((1u << (n < 0 ? 0 : n)) - 1); }

// The words of 16 columns that lie side by side: up to four rows of b, `left` of which are there.
__m512i words_across(const std::int8_t* at, std::int64_t row, std::int64_t left, __mmask16 there) {
  __m512i words = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(there, at));
  for (std::int64_t i = 1; i < (left < kEach ? left : kEach); ++i)
    words = _mm512_or_si512(words, _mm512_sllv_epi32(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(there, at + i * row)),
                                                     _mm512_set1_epi32(static_cast<int>(8 * i))));
  return words;
}

// 16 columns of 16 words each become 16 rows of words.
void transpose(__m512i (&x)[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    x[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    x[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    x[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    x[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    x[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    x[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    x[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    x[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// 16 words, from row k on, of up to 16 columns that lie apart.
void pack_block(const Columns& b, std::int64_t k, std::int64_t n, std::int64_t words, std::int32_t* to) {
  const std::int64_t left = b.k - k;
  const __mmask64 there = bytes_there(left);
  __m512i x[16];
  for (int i = 0; i < 16; ++i)
    x[i] = n + i < b.n
               ? _mm512_maskz_loadu_epi8(there, static_cast<const std::int8_t*>(b.data) + k + (n + i) * b.column)
               : _mm512_setzero_si512();
  transpose(x);
  for (std::int64_t i = 0; i < (words < 16 ? words : 16); ++i) _mm512_storeu_si512(to + i * kPanel, x[i]);
}

// Columns n … n + 64 of b's rows from k on, [words][64].
void pack_panel(const Columns& b, std::int64_t k, std::int64_t n, std::int64_t words, std::int32_t* to) {
  if (b.row == 1) {
    for (std::int64_t w = 0; w < words; w += 16)
      for (int v = 0; v < kMostPanels; ++v)
        pack_block(b, k + w * kEach, n + 16 * v, words - w, to + w * kPanel + 16 * v);
    return;
  }
  for (std::int64_t w = 0; w < words; ++w) {
    const std::int64_t first = k + w * kEach;
    const auto* at = static_cast<const std::int8_t*>(b.data) + first * b.row + n;
    for (int v = 0; v < kMostPanels; ++v)
      _mm512_storeu_si512(to + w * kPanel + 16 * v,
                          words_across(at + 16 * v, b.row, b.k - first, lanes(b.n - n - 16 * v)));
  }
}

}  // namespace

void dots(Words kind, const void* a, std::int64_t row, std::int64_t m, const Columns& b, void* c, std::int64_t c_row,
          bool adds) {
  const auto call = kind == Words::kF32    ? dot_rows<Words::kF32>
                    : kind == Words::kBF16 ? dot_rows<Words::kBF16>
                                           : dot_rows<Words::kI8>;
  for (std::int64_t i = 0; i < m; i += kRowsAtOnce)
    call(static_cast<const char*>(a) + i * row * bytes_of(kind), row, m - i < kRowsAtOnce ? m - i : kRowsAtOnce, b,
         static_cast<char*>(c) + 4 * i * c_row, c_row, adds);
}

void panels(const std::int32_t* a, std::int64_t m, const Columns& b, std::int32_t* c, std::int64_t c_row, bool adds,
            std::int32_t* memory) {
  const std::int64_t words = words_of(b.k);
  for (std::int64_t n = 0; n < b.n; n += kPanel)
    for (std::int64_t w = 0; w < words; w += kMostWords) {
      PanelTile tile{.a = reinterpret_cast<const char*>(a + w),
                     .a_row = 4 * words,
                     .rows = m,
                     .words = words - w < kMostWords ? words - w : kMostWords,
                     .step = 4 * kPanel,
                     .c_row = 4 * c_row,
                     .columns = b.n - n < kPanel ? b.n - n : kPanel};
      pack_panel(b, w * kEach, n, tile.words, memory);
      for (int v = 0; v < kMostPanels; ++v) {
        tile.b[v] = reinterpret_cast<const char*>(memory + kLanes * v);
        tile.c[v] = reinterpret_cast<char*>(c + n + kLanes * v);
      }
      multiply_panels(Words::kI8, tile, adds || w > 0);
    }
}

}  // namespace weft::cpu::avx512
