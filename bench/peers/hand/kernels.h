// What is left of a layer: norms, cross-entropy, Adam.
#pragma once

#include <cmath>

#include "vectors.h"

namespace hand {

// LayerNorm of y (+= residual first when res is given): h = LN(y); stats: mean, 1/std.
inline void add_ln(const float* res, float* y, float* h, float* stats, const float* scale, const float* bias, int n,
                   int d) {
  for (int r = 0; r < n; r++, y += d, h += d, stats += 2) {
    V16 s = _mm512_setzero_ps(), q = s;
    for (int i = 0; i < d; i += 16) {
      V16 v = load(y + i);
      if (res) {
        v = _mm512_add_ps(v, load(res + i));
        store(y + i, v);
      }
      s = _mm512_add_ps(s, v);
    }
    float mean = sum_of(s) / d;
    for (int i = 0; i < d; i += 16) {
      V16 v = _mm512_sub_ps(load(y + i), all(mean));
      q = _mm512_fmadd_ps(v, v, q);
    }
    float rstd = 1.f / std::sqrt(sum_of(q) / d + 1e-6f);
    stats[0] = mean;
    stats[1] = rstd;
    for (int i = 0; i < d; i += 16)
      store(h + i, _mm512_fmadd_ps(_mm512_mul_ps(_mm512_sub_ps(load(y + i), all(mean)), all(rstd)), load(scale + i),
                                   load(bias + i)));
    if (res) res += d;
  }
}
// dx = (dres or 0) + LN'(dh); adds to gs, gb (this worker's gradients of scale and bias).
inline void ln_bwd(const float* dh, const float* x, const float* stats, const float* scale, const float* dres,
                   float* dx, float* gs, float* gb, int n, int d) {
  for (int r = 0; r < n; r++, dh += d, x += d, dx += d, stats += 2) {
    V16 m = all(stats[0]), rs = all(stats[1]), s1 = _mm512_setzero_ps(), s2 = s1;
    for (int i = 0; i < d; i += 16) {
      V16 g = load(dh + i), xh = _mm512_mul_ps(_mm512_sub_ps(load(x + i), m), rs),
          gg = _mm512_mul_ps(g, load(scale + i));
      store(gs + i, _mm512_fmadd_ps(g, xh, load(gs + i)));
      store(gb + i, _mm512_add_ps(g, load(gb + i)));
      s1 = _mm512_add_ps(s1, gg);
      s2 = _mm512_fmadd_ps(gg, xh, s2);
    }
    V16 a = all(sum_of(s1) / d), b = all(sum_of(s2) / d);
    for (int i = 0; i < d; i += 16) {
      V16 xh = _mm512_mul_ps(_mm512_sub_ps(load(x + i), m), rs), gg = _mm512_mul_ps(load(dh + i), load(scale + i));
      V16 v = _mm512_mul_ps(rs, _mm512_sub_ps(_mm512_sub_ps(gg, a), _mm512_mul_ps(xh, b)));
      store(dx + i, dres ? _mm512_add_ps(v, load(dres + i)) : v);
    }
    if (dres) dres += d;
  }
}
// Softmax cross-entropy of one row in place: logits -> (p - onehot) * f; returns the loss.
inline double xent_row(float* l, int V, int target, float f) {
  V16 m0 = load(l), m1 = m0, m2 = m0, m3 = m0;
  for (int i = 0; i < V; i += 64) {
    m0 = _mm512_max_ps(m0, load(l + i));
    m1 = _mm512_max_ps(m1, load(l + i + 16));
    m2 = _mm512_max_ps(m2, load(l + i + 32));
    m3 = _mm512_max_ps(m3, load(l + i + 48));
  }
  float mx = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(m0, m1), _mm512_max_ps(m2, m3))), lt = l[target];
  V16 s0 = _mm512_setzero_ps(), s1 = s0, s2 = s0, s3 = s0, M = all(mx);
  for (int i = 0; i < V; i += 64) {
    V16 e0 = exp_of(_mm512_sub_ps(load(l + i), M)), e1 = exp_of(_mm512_sub_ps(load(l + i + 16), M)),
        e2 = exp_of(_mm512_sub_ps(load(l + i + 32), M)), e3 = exp_of(_mm512_sub_ps(load(l + i + 48), M));
    store(l + i, e0);
    store(l + i + 16, e1);
    store(l + i + 32, e2);
    store(l + i + 48, e3);
    s0 = _mm512_add_ps(s0, e0);
    s1 = _mm512_add_ps(s1, e1);
    s2 = _mm512_add_ps(s2, e2);
    s3 = _mm512_add_ps(s3, e3);
  }
  float sum = sum_of(_mm512_add_ps(_mm512_add_ps(s0, s1), _mm512_add_ps(s2, s3)));
  V16 k = all(f / sum);
  for (int i = 0; i < V; i += 64) {
    store(l + i, _mm512_mul_ps(k, load(l + i)));
    store(l + i + 16, _mm512_mul_ps(k, load(l + i + 16)));
    store(l + i + 32, _mm512_mul_ps(k, load(l + i + 32)));
    store(l + i + 48, _mm512_mul_ps(k, load(l + i + 48)));
  }
  l[target] -= f;
  return std::log((double)sum) + mx - lt;
}
struct AdamScalars {
  float rate, epsilon;  // with the bias correction in them
};
inline void adam(float* w, float* m, float* v, const float* g, long n, AdamScalars a) {
  const V16 b1 = all(0.9f), c1 = all((float)(1 - 0.9)), b2 = all(0.999f), c2 = all((float)(1 - 0.999));
  const V16 rate = all(a.rate), epsilon = all(a.epsilon);
  for (long i = 0; i < n; i += 16) {
    const V16 gg = load(g + i), mm = _mm512_fmadd_ps(c1, gg, _mm512_mul_ps(b1, load(m + i)));
    const V16 vv = _mm512_fmadd_ps(_mm512_mul_ps(c2, gg), gg, _mm512_mul_ps(b2, load(v + i)));
    const V16 step = _mm512_div_ps(mm, _mm512_add_ps(_mm512_sqrt_ps(vv), epsilon));
    store(m + i, mm);
    store(v + i, vv);
    store(w + i, _mm512_fnmadd_ps(rate, step, load(w + i)));
  }
}

}  // namespace hand
