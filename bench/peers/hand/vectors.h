// 16 floats at a time (AVX-512), and products of matrices that lie in the cache.
#pragma once

#include <immintrin.h>

namespace hand {

using V16 = __m512;
inline V16 load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, V16 v) { _mm512_storeu_ps(p, v); }
inline V16 all(float x) { return _mm512_set1_ps(x); }
inline float sum_of(V16 v) { return _mm512_reduce_add_ps(v); }

inline V16 exp_of(V16 x) {  // e^x, x <= 88: 2^n * p(r)
  x = _mm512_max_ps(x, all(-87.f));
  V16 n = _mm512_roundscale_ps(_mm512_mul_ps(x, all(1.44269504f)), 8);
  V16 r = _mm512_fnmadd_ps(n, all(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, all(-2.12194440e-4f), r);
  V16 p = all(1.9875691500e-4f);
  p = _mm512_fmadd_ps(p, r, all(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, all(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, all(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, all(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, all(5.0000001201e-1f));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), _mm512_add_ps(r, all(1.f)));
  return _mm512_scalef_ps(p, n);
}
// In-cache product: C[m, 16 NV] (+)= sum_k A(i, k) B[k, :], A(i, k) = A[i ars + k acs]; MR x NV accumulators.
template <int MR, int NV>
inline void uk(int K, const float* A, long ars, long acs, const float* B, long ldb, float* Cc, long ldc, bool acc) {
  V16 c[MR][NV];
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) c[i][j] = acc ? load(Cc + i * ldc + 16 * j) : _mm512_setzero_ps();
  for (int k = 0; k < K; k++) {
    V16 b[NV];
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) b[j] = load(B + 16 * j);
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++) {
      V16 a = all(A[i * ars]);
#pragma GCC unroll 4
      for (int j = 0; j < NV; j++) c[i][j] = _mm512_fmadd_ps(a, b[j], c[i][j]);
    }
    A += acs;
    B += ldb;
  }
#pragma GCC unroll 8
  for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
    for (int j = 0; j < NV; j++) store(Cc + i * ldc + 16 * j, c[i][j]);
}
template <int NV>
inline void mini_cols(int M, int K, const float* A, long ars, long acs, const float* B, long ldb, float* Cc, long ldc,
                      bool acc) {
  int i = 0, fours = M % 6 == 4 ? 1 : M % 6 == 2 ? 2 : 0;  // M is even: sixes, and at most two fours
  for (; i < M - 4 * fours; i += 6) uk<6, NV>(K, A + i * ars, ars, acs, B, ldb, Cc + i * ldc, ldc, acc);
  for (; i < M; i += 4) uk<4, NV>(K, A + i * ars, ars, acs, B, ldb, Cc + i * ldc, ldc, acc);
}
inline void mini(int M, int N, int K, const float* A, long ars, long acs, const float* B, long ldb, float* Cc, long ldc,
                 bool acc) {
  int n = 0;
  for (; n + 64 <= N; n += 64) mini_cols<4>(M, K, A, ars, acs, B + n, ldb, Cc + n, ldc, acc);
  for (; n + 32 <= N; n += 32) mini_cols<2>(M, K, A, ars, acs, B + n, ldb, Cc + n, ldc, acc);
  for (; n < N; n += 16) mini_cols<1>(M, K, A, ars, acs, B + n, ldb, Cc + n, ldc, acc);
}
inline void transpose16(const float* s, long ls, float* d, long ldd) {
  V16 r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) r[i] = load(s + i * ls);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    auto D = [](V16 x) { return _mm512_castps_pd(x); };
    auto F = [](__m512d x) { return _mm512_castpd_ps(x); };
    r[4 * i] = F(_mm512_unpacklo_pd(D(t[4 * i]), D(t[4 * i + 2])));
    r[4 * i + 1] = F(_mm512_unpackhi_pd(D(t[4 * i]), D(t[4 * i + 2])));
    r[4 * i + 2] = F(_mm512_unpacklo_pd(D(t[4 * i + 1]), D(t[4 * i + 3])));
    r[4 * i + 3] = F(_mm512_unpackhi_pd(D(t[4 * i + 1]), D(t[4 * i + 3])));
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    store(d + i * ldd, _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88));
    store(d + (4 + i) * ldd, _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88));
    store(d + (8 + i) * ldd, _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd));
    store(d + (12 + i) * ldd, _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd));
  }
}
inline void pack_t(const float* s, long ls, int L, int K, float* d) {
  for (int i = 0; i < L; i += 16)
    for (int k = 0; k < K; k += 16) transpose16(s + i * ls + k, ls, d + k * L + i, L);
}
inline void pack(const float* s, long ls, int L, int K, float* d, float f) {
  for (int i = 0; i < L; i++)
    for (int k = 0; k < K; k += 16) store(d + i * K + k, _mm512_mul_ps(all(f), load(s + i * ls + k)));
}

}  // namespace hand
