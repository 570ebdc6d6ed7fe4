// Large products. A weight [K, N] is kept as panels [N/64][K][64], the layout of its gradient and moments too, and once
// more transposed, [K/64][N][64], for the derivative by its input. A block of panels stays in L2, six rows of A in L1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "vectors.h"

namespace hand {

// M is even: it is cut into sixes and at most two fours.
inline int fours_of(int M) { return M % 6 == 4 ? 1 : M % 6 == 2 ? 2 : 0; }

enum { NONE, ERELU, EMASK };  // what is done to a result as it is stored: ReLU; 0 where y is not above 0
struct Ahead {
  const float *a = nullptr, *b = nullptr;
  int na = 0, nb = 0;
};                    // lines of the next block to bring into L2 meanwhile
enum { ROWS, COLS };  // how A is stored: A[i ars + k], A[k ars + i]
template <int MR, int AM>
inline void bigk(int K, const float* __restrict A, long ars, const float* __restrict B, float* __restrict Cc, long ldc,
                 bool acc, int epi, const float* y, Ahead pf = {}) {
  V16 c[MR][4];
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) c[i][j] = _mm512_setzero_ps();
    _mm_prefetch((const char*)(Cc + i * ldc), _MM_HINT_T0);
  }
  for (int k = 0; k < K; k++) {
    if (AM == COLS && (k & 7) == 0) {
      int q = k >> 3;
      if (q < pf.na) _mm_prefetch((const char*)(pf.a + 16 * q), _MM_HINT_T1);
      if (q < pf.nb) _mm_prefetch((const char*)(pf.b + 16 * q), _MM_HINT_T1);
    }
    V16 b[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      b[j] = load(B + 16 * j);
      _mm_prefetch((const char*)(B + 512 + 16 * j), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      V16 a = all(AM == ROWS ? A[i * ars] : A[i]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) c[i][j] = _mm512_fmadd_ps(a, b[j], c[i][j]);
    }
    if (AM == COLS) _mm_prefetch((const char*)(A + 12 * ars), _MM_HINT_T0);
    A += AM == COLS ? ars : 1;
    B += 64;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      float* p = Cc + i * ldc + 16 * j;
      V16 v = c[i][j];
      if (acc) v = _mm512_add_ps(v, load(p));
      if (epi == ERELU) v = _mm512_max_ps(v, _mm512_setzero_ps());
      if (epi == EMASK)
        v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(load(y + i * ldc + 16 * j), _mm512_setzero_ps(), _CMP_GT_OQ), v);
      store(p, v);
    }
}
// C[M, N] = A[M, K] B, A row-major, B panels; ReLU or the mask y > 0 at the end.
inline void big(int M, int N, int K, const float* A, long lda, const float* B, float* Cc, long ldc, int epi = NONE,
                const float* y = nullptr) {
  const int NC = std::min(N, 512), KC = 131072 / NC, fours = fours_of(M);
  for (int jc = 0; jc < N; jc += NC)
    for (int pc = 0; pc < K; pc += KC) {
      const int kc = std::min(KC, K - pc), je = std::min(N, jc + NC), e = pc + kc == K ? epi : NONE;
      for (int i = 0; i < M;) {
        const int mr = i < M - 4 * fours ? 6 : 4;
        const float* a = A + i * lda + pc;
        for (int j = jc; j < je; j += 64) {
          const float* b = B + (std::size_t)j * K + (std::size_t)pc * 64;
          float* c = Cc + i * ldc + j;
          const float* yy = y ? y + i * ldc + j : nullptr;
          if (mr == 6) bigk<6, ROWS>(kc, a, lda, b, c, ldc, pc > 0, e, yy);
          else bigk<4, ROWS>(kc, a, lda, b, c, ldc, pc > 0, e, yy);
        }
        i += mr;
      }
    }
}
// G panels [N/64][M][64] = A^T B, A[K, M] and B[K, N] row-major. PB: room for one block of B in panels. While a block
// is used the next one is brought into L2.
constexpr int kDepth = 256;  // rows of A and B in a block
inline Ahead next_block(int tile, int M, int nc, const float* a, long lda, const float* b, long ldb) {
  const int lines = std::min(32, M / 16), segments = M / 16 / lines;  // of a row of A
  Ahead next;
  if (tile / segments < kDepth) next.a = a + tile / segments * lda + tile % segments * lines * 16, next.na = lines;
  if (tile < kDepth) next.b = b + tile * ldb, next.nb = nc / 16;
  return next;
}
inline void big_tn(int M, int N, int K, const float* A, long lda, const float* B, long ldb, float* G, float* PB) {
  const int NC = std::min(N, 512), fours = fours_of(M);
  for (int jc = 0; jc < N; jc += NC)
    for (int pc = 0; pc < K; pc += kDepth) {
      const int kc = std::min(kDepth, K - pc), nc = std::min(NC, N - jc);
      for (int k = 0; k < kc; k++)
        for (int j = 0; j < nc; j += 16)
          store(PB + (std::size_t)(j / 64) * 64 * kc + k * 64 + j % 64, load(B + (std::size_t)(pc + k) * ldb + jc + j));
      const std::size_t after = pc + kDepth;
      int tile = 0;
      for (int i = 0; i < M;) {
        const int mr = i < M - 4 * fours ? 6 : 4;
        for (int j = 0; j < nc; j += 64, tile++) {
          float* g = G + (std::size_t)(jc + j) * M + i * 64;
          const float *a = A + (std::size_t)pc * lda + i, *b = PB + (std::size_t)j * kc;
          const Ahead ahead =
              (int)after < K ? next_block(tile, M, nc, A + after * lda, lda, B + after * ldb + jc, ldb) : Ahead{};
          if (mr == 6) bigk<6, COLS>(kc, a, lda, b, g, 64, pc > 0, NONE, nullptr, ahead);
          else bigk<4, COLS>(kc, a, lda, b, g, 64, pc > 0, NONE, nullptr, ahead);
        }
        i += mr;
      }
    }
}
// W [K, N] in panels -> W^T in panels, for columns c0 .. c0+nc, rows r0 .. r0+nr
inline void transpose_panels(const float* Wp, float* Wt, int K, int Nn, int c0, int nc, int r0, int nr) {
  for (int j = c0; j < c0 + nc; j += 64)
    for (int r = r0; r < r0 + nr; r += 16)
      for (int q = 0; q < 64; q += 16)
        transpose16(Wp + (std::size_t)j * K + r * 64 + q, 64,
                    Wt + (std::size_t)(r / 64) * Nn * 64 + (std::size_t)(j + q) * 64 + r % 64, 64);
}

// --- The same with bf16 factors, f32 sums and f32 results ---
// Two neighbours along k share 32 bits. Weights are kept so besides the f32 master; activations are rounded block by
// block.
inline __m512i pairs(V16 lo, V16 hi) {
  __m512i l = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(lo)),
          h = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(hi));
  return _mm512_or_si512(l, _mm512_slli_epi32(h, 16));
}
template <int MR, int AM>
inline void bfk(int K2, const std::uint32_t* __restrict A, long ars, const std::uint32_t* __restrict B,
                float* __restrict Cc, long ldc, bool acc, int epi, const float* y) {
  V16 c[MR][4];
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) c[i][j] = _mm512_setzero_ps();
    _mm_prefetch((const char*)(Cc + i * ldc), _MM_HINT_T0);
  }
  for (int k = 0; k < K2; k++) {
    __m512bh b[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      b[j] = (__m512bh)_mm512_loadu_si512(B + 16 * j);
      _mm_prefetch((const char*)(B + 512 + 16 * j), _MM_HINT_T0);
    }
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      __m512bh a = (__m512bh)_mm512_set1_epi32(AM == ROWS ? A[i * ars] : A[i]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; j++) c[i][j] = _mm512_dpbf16_ps(c[i][j], a, b[j]);
    }
    A += AM == COLS ? ars : 1;
    B += 64;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      float* p = Cc + i * ldc + 16 * j;
      V16 v = c[i][j];
      if (acc) v = _mm512_add_ps(v, load(p));
      if (epi == ERELU) v = _mm512_max_ps(v, _mm512_setzero_ps());
      if (epi == EMASK)
        v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(load(y + i * ldc + 16 * j), _mm512_setzero_ps(), _CMP_GT_OQ), v);
      store(p, v);
    }
}
inline void big_bf(int M, int N, int K, const float* A, long lda, const std::uint32_t* B, float* Cc, long ldc,
                   std::uint32_t* P, int epi = NONE, const float* y = nullptr) {
  const int NC = std::min(N, 512), KC = 262144 / NC, fours = fours_of(M);
  const long lp = KC / 2 + 16;
  for (int jc = 0; jc < N; jc += NC)
    for (int pc = 0; pc < K; pc += KC) {
      const int kc = std::min(KC, K - pc), je = std::min(N, jc + NC), e = pc + kc == K ? epi : NONE;
      for (int i = 0; i < M;) {
        const int mr = i < M - 4 * fours ? 6 : 4;
        for (int r = 0; r < mr; r++) {
          const float* a = A + (i + r) * lda + pc;
          for (int k = 0; k < kc; k += 32)
            _mm512_storeu_si512(P + r * lp + k / 2, (__m512i)_mm512_cvtne2ps_pbh(load(a + k + 16), load(a + k)));
        }
        for (int j = jc; j < je; j += 64) {
          const std::uint32_t* b = B + (std::size_t)j * (K / 2) + (std::size_t)(pc / 2) * 64;
          float* c = Cc + i * ldc + j;
          const float* yy = y ? y + i * ldc + j : nullptr;
          if (mr == 6) bfk<6, ROWS>(kc / 2, P, lp, b, c, ldc, pc > 0, e, yy);
          else bfk<4, ROWS>(kc / 2, P, lp, b, c, ldc, pc > 0, e, yy);
        }
        i += mr;
      }
    }
}
inline void big_tn_bf(int M, int N, int K, const float* A, long lda, const float* B, long ldb, float* G,
                      std::uint32_t* PA, std::uint32_t* PB) {
  const int KB = 512, NC = std::min(N, 512), fours = fours_of(M);
  for (int jc = 0; jc < N; jc += NC)
    for (int pc = 0; pc < K; pc += KB) {
      const int kc = std::min(KB, K - pc), nc = std::min(NC, N - jc);
      for (int k = 0; k < kc; k += 2) {
        const float *a = A + (std::size_t)(pc + k) * lda, *b = B + (std::size_t)(pc + k) * ldb + jc;
        for (int i = 0; i < M; i += 16)
          _mm512_storeu_si512(PA + (std::size_t)(k / 2) * M + i, pairs(load(a + i), load(a + lda + i)));
        for (int j = 0; j < nc; j += 16)
          _mm512_storeu_si512(PB + (std::size_t)(j / 64) * 64 * (kc / 2) + k / 2 * 64 + j % 64,
                              pairs(load(b + j), load(b + ldb + j)));
      }
      for (int i = 0; i < M;) {
        const int mr = i < M - 4 * fours ? 6 : 4;
        for (int j = 0; j < nc; j += 64) {
          float* g = G + (std::size_t)(jc + j) * M + i * 64;
          const std::uint32_t* b = PB + (std::size_t)j * (kc / 2);
          const bool acc = pc > 0;
          if (mr == 6) bfk<6, COLS>(kc / 2, PA + i, M, b, g, 64, acc, NONE, nullptr);
          else bfk<4, COLS>(kc / 2, PA + i, M, b, g, 64, acc, NONE, nullptr);
        }
        i += mr;
      }
    }
}
// f32 panels [.][K][64] -> pairs [.][K/2][64]: panels p0 .. p1, rows k0 .. k1
inline void round_panels(const float* s, std::uint32_t* d, int K, int p0, int p1, int k0, int k1) {
  for (int p = p0; p < p1; p++)
    for (int k = k0; k < k1; k += 2)
      for (int q = 0; q < 64; q += 16) {
        const float* a = s + (std::size_t)p * K * 64 + k * 64 + q;
        _mm512_storeu_si512(d + (std::size_t)p * (K / 2) * 64 + k / 2 * 64 + q, pairs(load(a), load(a + 64)));
      }
}

}  // namespace hand
