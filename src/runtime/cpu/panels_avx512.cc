// Six rows of a and four panels of b fill the registers with 24 sums. Only the first rows read the panels from memory; while
// all rows are multiplied, the panels that come next are brought into the second cache. A single block of rows is faster
// without: it takes less time than the memory, and the processor itself prefetches the four streams faster.
#include "runtime/cpu/panels_avx512.h"

#include <immintrin.h>

namespace weft::cpu::avx512 {

namespace {

constexpr int kMostRows = 6;
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kMostWords = 1024;  // four panels of so many words fit in the second cache

// Sums in lanes: every lane adds the products of its word.
template <Words kKind>
struct Sum {
  using V = __m512;
  static V zero() { return _mm512_setzero_ps(); }
  static __m512i word(const char* a) { return _mm512_set1_epi32(*reinterpret_cast<const int*>(a)); }
  static V add(V sum, __m512i a, __m512i b) {
    if constexpr (kKind == Words::kBF16) return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
    else return _mm512_fmadd_ps(_mm512_castsi512_ps(a), _mm512_castsi512_ps(b), sum);
  }
  static V plus(V a, V b) { return _mm512_add_ps(a, b); }
  static V load(const char* at, __mmask16 there) { return _mm512_maskz_loadu_ps(there, at); }
  static void store(char* to, __mmask16 there, V sum) { _mm512_mask_storeu_ps(to, there, sum); }
};

template <>
struct Sum<Words::kI8> {
  using V = __m512i;
  static V zero() { return _mm512_setzero_si512(); }
  static V word(const char* a) { return _mm512_set1_epi32(*reinterpret_cast<const int*>(a)); }
  static V add(V sum, __m512i a, __m512i b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static V plus(V a, V b) { return _mm512_add_epi32(a, b); }
  static V load(const char* at, __mmask16 there) { return _mm512_maskz_loadu_epi32(there, at); }
  static void store(char* to, __mmask16 there, V sum) { _mm512_mask_storeu_epi32(to, there, sum); }
};

__mmask16 lanes(std::int64_t n) { return n >= kLanes ? 0xffff : static_cast<__mmask16>((1u << (n < 0 ? 0 : n)) - 1); }

// What a block of rows brings into the second cache.
struct Prefetch {
  const char* at;
  std::int64_t lines;  // for each word: 0, 1 or 2
};

inline void prefetch(const Prefetch& some, std::int64_t word) {
  if (some.lines == 0) return;
  const char* at = some.at + kLine * some.lines * word;
  _mm_prefetch(at, _MM_HINT_T1);
  if (some.lines == 2) _mm_prefetch(at + kLine, _MM_HINT_T1);
}

// What every sum begins with. a of i8 is raised by 128, since the instruction takes unsigned numbers; so 128 times the sum of
// a column is taken off.
template <Words kKind, int kPanels>
struct Begin {
  using S = Sum<kKind>;
  typename S::V of[kPanels];

  explicit Begin(const PanelTile& t) {
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) of[v] = S::zero();
    if constexpr (kKind == Words::kI8) {
      for (std::int64_t k = 0; k < t.words; ++k)
#pragma GCC unroll 4
        for (int v = 0; v < kPanels; ++v)
          of[v] = S::add(of[v], _mm512_set1_epi8(static_cast<char>(0x80)), _mm512_loadu_si512(t.b[v] + k * t.step));
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) of[v] = _mm512_sub_epi32(S::zero(), of[v]);
    }
  }
};

template <Words kKind, int kRows, int kPanels>
void multiply(const PanelTile& t, bool adds, const Prefetch& some, const Begin<kKind, kPanels>& begin) {
  using S = Sum<kKind>;
  typename S::V sums[kRows][kPanels];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) sums[r][v] = begin.of[v];
  for (std::int64_t k = 0; k < t.words; ++k) {
    prefetch(some, k);
    __m512i y[kPanels];
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) y[v] = _mm512_loadu_si512(t.b[v] + k * t.step);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = S::word(t.a + r * t.a_row + 4 * k);
#pragma GCC unroll 4
      for (int v = 0; v < kPanels; ++v) sums[r][v] = S::add(sums[r][v], x, y[v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < kPanels; ++v) {
      char* c = t.c[v] + r * t.c_row;
      const __mmask16 there = lanes(t.columns - kLanes * v);
      if (adds) sums[r][v] = S::plus(sums[r][v], S::load(c, there));
      S::store(c, there, sums[r][v]);
    }
}

template <Words kKind, int kPanels, int... kRow>
void multiply_block(std::int64_t rows, const PanelTile& t, bool adds, const Prefetch& some,
                    const Begin<kKind, kPanels>& begin) {
  using Call = void (*)(const PanelTile&, bool, const Prefetch&, const Begin<kKind, kPanels>&);
  static constexpr Call kCalls[] = {multiply<kKind, kRow, kPanels>...};
  kCalls[rows - 1](t, adds, some, begin);
}

// Blocks of rows of like sizes: 8 rows are 4 and 4, not 6 and 2.
template <Words kKind, int kPanels>
void multiply_rows(PanelTile t, bool adds) {
  const std::int64_t blocks = (t.rows + kMostRows - 1) / kMostRows;
  const std::int64_t each = blocks >= 4 ? 1 : 2;                     // lines to prefetch for each word
  std::int64_t left = t.next && blocks > 1 ? kPanels * t.words : 0;  // lines to prefetch
  Prefetch some{t.next, 0};
  const Begin<kKind, kPanels> begin(t);
  for (std::int64_t block = 0, i = 0; block < blocks; ++block) {
    const std::int64_t rows = (t.rows - i + blocks - block - 1) / (blocks - block);
    some.lines = left > 0 ? each : 0;
    multiply_block<kKind, kPanels, 1, 2, 3, 4, 5, 6>(rows, t, adds, some, begin);
    some.at += kLine * some.lines * t.words;
    left -= some.lines * t.words;
    t.a += rows * t.a_row;
    for (char*& c : t.c) c += rows * t.c_row;
    i += rows;
  }
}

// The first kPanels of t, in parts of as many words as the second cache holds.
template <Words kKind, int kPanels>
void multiply_parts(PanelTile t, bool adds) {
  const std::int64_t words = t.words, parts = (words + kMostWords - 1) / kMostWords, each = (words + parts - 1) / parts;
  for (std::int64_t begin = 0; begin < words; begin += each) {
    t.words = words - begin < each ? words - begin : each;
    multiply_rows<kKind, kPanels>(t, adds || begin > 0);
    t.a += 4 * t.words;
    for (const char*& b : t.b) b += t.step * t.words;
    if (t.next) t.next += kLine * kPanels * t.words;
  }
}

// The tile without its first `panels`.
PanelTile after(PanelTile t, int panels) {
  for (int v = 0; v + panels < kMostPanels; ++v) {
    t.b[v] = t.b[v + panels];
    t.c[v] = t.c[v + panels];
  }
  t.columns -= kLanes * panels;
  return t;
}

template <Words kKind>
void multiply_kind(PanelTile t, bool adds) {
  if (t.columns > 3 * kLanes) return multiply_parts<kKind, 4>(t, adds);
  if (t.columns > kLanes) {
    multiply_parts<kKind, 2>(t, adds);
    t = after(t, 2);
  }
  if (t.columns > 0) multiply_parts<kKind, 1>(t, adds);
}

}  // namespace

void raise_rows(const char* a, std::int64_t a_row, std::int64_t rows, std::int64_t bytes, char* to,
                std::int64_t to_row) {
  const __m512i raise = _mm512_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < to_row; i += 64) {
      const auto mask = [&](std::int64_t left) { return left >= 64 ? ~0ull : left <= 0 ? 0 : (1ull << left) - 1; };
      const __m512i x = _mm512_maskz_loadu_epi8(mask(bytes - i), a + r * a_row + i);
      _mm512_mask_storeu_epi8(to + r * to_row + i, mask(to_row - i), _mm512_xor_si512(x, raise));
    }
}

void multiply_panels(Words kind, const PanelTile& tile, bool adds) {
  const auto call = kind == Words::kF32    ? multiply_kind<Words::kF32>
                    : kind == Words::kBF16 ? multiply_kind<Words::kBF16>
                                           : multiply_kind<Words::kI8>;
  call(tile, adds);
}

}  // namespace weft::cpu::avx512
