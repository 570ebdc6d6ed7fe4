// The step of `weft bench lm`, written by hand for one kind of machine: two workers, AVX-512 with bf16, plain arrays in
// one arena. It shows what a general compiler should reach; it is no library. Prints one JSON line.
//
// Each worker takes half of the sequences. Forward and the derivatives by activations need no barrier; a weight's
// gradient needs one before it, since it sums over both halves, and one after. Its tiles are taken from a shared
// counter and go straight into Adam: there are no arrays of gradients. All sums have a fixed order.
//
//   hand_lm --config tiny|small|medium --steps N --warmup N [--bf16 1]
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "kernels.h"
#include "products.h"

namespace hand {
namespace {

constexpr int kWorkers = 2, kQueries = 32;  // kQueries: of an attention block

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Config {
  const char* name;
  int vocab, d, heads, d_kv, ff, layers, length, batch;
  double rate;
  int tokens() const { return batch * length; }
};
constexpr Config kConfigs[] = {{"tiny", 256, 64, 4, 16, 128, 2, 32, 4, 1e-3},
                               {"small", 8192, 256, 4, 64, 1024, 4, 128, 16, 1e-4},
                               {"medium", 32768, 512, 8, 64, 2048, 6, 256, 8, 3e-5}};
Config C;
bool bf16 = false;

struct alignas(64) Barrier {
  std::atomic<int> here{0};
  alignas(64) std::atomic<int> round{0};
  void wait() {
    const int mine = round.load(std::memory_order_acquire);
    if (here.fetch_add(1, std::memory_order_acq_rel) == kWorkers - 1) {
      here.store(0, std::memory_order_relaxed);
      round.store(mine + 1, std::memory_order_release);
    } else {
      while (round.load(std::memory_order_acquire) == mine) _mm_pause();
    }
  }
} barrier;

// --- Memory: one arena, planned twice, first to know its size ---
struct Arena {
  char* base = nullptr;
  std::size_t used = 0;
  float* floats(std::size_t n) {
    float* p = reinterpret_cast<float*>(base + used);
    used += (n * 4 + 255) & ~std::size_t(255);
    return p;
  }
} arena;

// A weight, Adam's moments, the weight transposed in panels, and both of them in bf16.
struct Mat {
  float *w, *m, *v, *t = nullptr;
  std::uint32_t *wb = nullptr, *tb = nullptr;
  int rows, columns;
};
struct Layer {
  Mat scale1, bias1, scale2, bias2, qkv, wo, wi, wf;
  float *x, *h1, *stats1, *qkv_out, *weights, *seen, *middle, *h2, *stats2, *a;
};
struct Net {
  Mat embedding, positions, scale, bias, logits;
  std::vector<Layer> layers;
  float *x, *h, *stats, *dlogits, *dhidden, *dx[3], *da, *dh, *dseen, *dqkv;
  float *norm_gradients[kWorkers], *tile[kWorkers], *attention[kWorkers], *pack_a[kWorkers], *pack_b[kWorkers];
  double loss[kWorkers];
  std::vector<int> tokens, targets, order, start;  // order: places sorted by token, from start[token] on
} N;
AdamScalars scalars;

Mat mat(int rows, int columns, bool in_panels = false) {
  const std::size_t n = static_cast<std::size_t>(rows) * columns;
  Mat a;
  a.rows = rows, a.columns = columns;
  a.w = arena.floats(n), a.m = arena.floats(n), a.v = arena.floats(n);
  if (in_panels) a.t = arena.floats(n);
  if (in_panels && bf16) {
    a.wb = reinterpret_cast<std::uint32_t*>(arena.floats(n / 2));
    a.tb = reinterpret_cast<std::uint32_t*>(arena.floats(n / 2));
  }
  return a;
}

void plan_layer(Layer& l) {
  const std::size_t t = C.tokens(), d = C.d;
  l.scale1 = mat(1, C.d), l.bias1 = mat(1, C.d), l.qkv = mat(C.d, 3 * C.d, true), l.wo = mat(C.d, C.d, true);
  l.scale2 = mat(1, C.d), l.bias2 = mat(1, C.d), l.wi = mat(C.d, C.ff, true), l.wf = mat(C.ff, C.d, true);
  for (float** p : {&l.x, &l.h1, &l.seen, &l.middle, &l.h2}) *p = arena.floats(t * d);
  l.stats1 = arena.floats(2 * t), l.stats2 = arena.floats(2 * t);
  l.qkv_out = arena.floats(t * 3 * d);
  l.weights = arena.floats(t * C.heads * C.length);
  l.a = arena.floats(t * C.ff);
}

int logits_tile() { return std::min(C.vocab / 2, 1024); }  // columns of a tile of their gradient

void plan() {
  const std::size_t t = C.tokens(), d = C.d;
  arena.used = 0;
  N.embedding = mat(C.vocab, C.d), N.positions = mat(C.length, C.d);
  N.layers.resize(C.layers);
  for (Layer& l : N.layers) plan_layer(l);
  N.scale = mat(1, C.d), N.bias = mat(1, C.d), N.logits = mat(C.d, C.vocab, true);
  for (float** p : {&N.x, &N.h, &N.dhidden, &N.dx[0], &N.dx[1], &N.dx[2], &N.dh, &N.dseen}) *p = arena.floats(t * d);
  N.stats = arena.floats(2 * t);
  N.dlogits = arena.floats(t * C.vocab), N.da = arena.floats(t * C.ff), N.dqkv = arena.floats(t * 3 * d);
  const std::size_t largest = std::max(d * logits_tile(), std::max<std::size_t>(3 * d, C.ff) * d);
  for (int w = 0; w < kWorkers; w++) {
    N.norm_gradients[w] = arena.floats((4 * C.layers + 2) * d);
    N.tile[w] = arena.floats(largest);
    N.attention[w] = arena.floats(8 * C.length * C.d_kv + 2 * kQueries * C.length + C.length + 1024);
    N.pack_a[w] = arena.floats(static_cast<std::size_t>(std::max(C.ff, C.d)) * kDepth);
    N.pack_b[w] = arena.floats(512 * kDepth + 1024);
  }
}

// --- Attention of one sequence and head, scores in cache ---
__mmask16 first(int n) { return n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1; }

// A row of scores of which the first `n` are seen, to weights.
void softmax_row(float* p, int n, int end) {
  V16 most = all(-1e30f), sum = _mm512_setzero_ps();
  for (int j = 0; j < n; j += 16) most = _mm512_mask_max_ps(most, first(n - j), most, load(p + j));
  const V16 m = all(_mm512_reduce_max_ps(most));
  for (int j = 0; j < end; j += 16) {
    const V16 e = _mm512_maskz_mov_ps(first(n - j), exp_of(_mm512_sub_ps(load(p + j), m)));
    store(p + j, e);
    sum = _mm512_add_ps(sum, e);
  }
  const V16 inverse = all(1.f / sum_of(sum));
  for (int j = 0; j < end; j += 16) store(p + j, _mm512_mul_ps(inverse, load(p + j)));
}

void attend(int w, Layer& l, int b, int h) {
  const int L = C.length, K = C.d_kv, d = C.d, nq = std::min(kQueries, L);
  float *q = N.attention[w], *kt = q + L * K, *v = kt + L * K;
  const float* from = l.qkv_out + static_cast<std::size_t>(b) * L * 3 * d + h * K;
  pack(from, 3 * d, L, K, q, 1.f / std::sqrt(static_cast<float>(K)));
  pack_t(from + d, 3 * d, L, K, kt);
  pack(from + 2 * d, 3 * d, L, K, v, 1.f);
  for (int q0 = 0; q0 < L; q0 += nq) {
    float* p = l.weights + (static_cast<std::size_t>(b * C.heads + h) * L + q0) * L;
    mini(nq, q0 + nq, K, q + q0 * K, K, 1, kt, L, p, L, false);
    for (int i = 0; i < nq; i++) softmax_row(p + i * L, q0 + i + 1, q0 + nq);
    mini(nq, K, q0 + nq, p, L, 1, v, K, l.seen + static_cast<std::size_t>(b * L + q0) * d + h * K, d, false);
  }
}

// The last block comes first: it sees every key, so dk and dv begin with a plain store.
void attend_back(int w, Layer& l, int b, int h) {
  const int L = C.length, K = C.d_kv, d = C.d, nq = std::min(kQueries, L);
  const float scale = 1.f / std::sqrt(static_cast<float>(K));
  float *q = N.attention[w], *k = q + L * K, *vt = k + L * K, *dy = vt + L * K, *dk = dy + L * K, *dv = dk + L * K,
        *dq = dv + L * K, *dp = dq + L * K;
  const float* from = l.qkv_out + static_cast<std::size_t>(b) * L * 3 * d + h * K;
  const std::size_t place = static_cast<std::size_t>(b) * L * d + h * K;
  pack(from, 3 * d, L, K, q, scale);
  pack(from + d, 3 * d, L, K, k, 1.f);
  pack_t(from + 2 * d, 3 * d, L, K, vt);
  pack(N.dseen + place, d, L, K, dy, 1.f);
  for (int q1 = L; q1 > 0; q1 -= nq) {
    const int q0 = q1 - nq;
    float* p = l.weights + (static_cast<std::size_t>(b * C.heads + h) * L + q0) * L;
    mini(nq, q1, K, dy + q0 * K, K, 1, vt, L, dp, q1, false);
    for (int i = 0; i < nq; i++) {
      V16 dot = _mm512_setzero_ps();
      for (int c = 0; c < K; c += 16)
        dot = _mm512_fmadd_ps(load(dy + (q0 + i) * K + c),
                              load(l.seen + place + static_cast<std::size_t>(q0 + i) * d + c), dot);
      const V16 mean = all(sum_of(dot));
      for (int j = 0; j < q1; j += 16)
        store(dp + i * q1 + j, _mm512_mul_ps(load(p + i * L + j), _mm512_sub_ps(load(dp + i * q1 + j), mean)));
    }
    mini(q1, K, nq, p, 1, L, dy + q0 * K, K, dv, K, q1 < L);
    mini(q1, K, nq, dp, 1, q1, q + q0 * K, K, dk, K, q1 < L);
    mini(nq, K, q1, dp, q1, 1, k, K, dq + q0 * K, K, false);
  }
  float* out = N.dqkv + static_cast<std::size_t>(b) * L * 3 * d + h * K;
  for (int i = 0; i < L; i++)
    for (int c = 0; c < K; c += 16) {
      float* at = out + static_cast<std::size_t>(i) * 3 * d + c;
      store(at, _mm512_mul_ps(all(scale), load(dq + i * K + c)));
      store(at + d, load(dk + i * K + c));
      store(at + 2 * d, load(dv + i * K + c));
    }
}

// --- Products of a worker's rows ---
void forward(int w, int rows, const float* x, const Mat& m, float* y, int epilogue = NONE) {
  auto* room = reinterpret_cast<std::uint32_t*>(N.pack_a[w]);
  if (bf16) big_bf(rows, m.columns, m.rows, x, m.rows, m.wb, y, m.columns, room, epilogue);
  else big(rows, m.columns, m.rows, x, m.rows, m.w, y, m.columns, epilogue);
}
void backward(int w, int rows, const float* dy, const Mat& m, float* dx, const float* mask = nullptr) {
  auto* room = reinterpret_cast<std::uint32_t*>(N.pack_a[w]);
  const int epilogue = mask ? EMASK : NONE;
  if (bf16) big_bf(rows, m.rows, m.columns, dy, m.columns, m.tb, dx, m.rows, room, epilogue, mask);
  else big(rows, m.rows, m.columns, dy, m.columns, m.t, dx, m.rows, epilogue, mask);
}

// A tile of a weight's gradient, x^T dy over all tokens, and Adam on it.
struct Job {
  Mat* m;
  const float *x, *dy;
  int row, rows, column, columns;
};
std::vector<std::vector<Job>> jobs;  // of each layer; the last are those of the logits
std::atomic<int> next_job;

void run_job(int w, const Job& j) {
  const Mat& m = *j.m;
  const float *x = j.x + j.row, *dy = j.dy + j.column;
  if (bf16)
    big_tn_bf(j.rows, j.columns, C.tokens(), x, m.rows, dy, m.columns, N.tile[w],
              reinterpret_cast<std::uint32_t*>(N.pack_a[w]), reinterpret_cast<std::uint32_t*>(N.pack_b[w]));
  else big_tn(j.rows, j.columns, C.tokens(), x, m.rows, dy, m.columns, N.tile[w], N.pack_b[w]);
  for (int c = 0; c < j.columns; c += 64) {
    const std::size_t p = static_cast<std::size_t>(j.column + c) * m.rows + j.row * 64;
    adam(m.w + p, m.m + p, m.v + p, N.tile[w] + static_cast<std::size_t>(c) * j.rows, j.rows * 64L, scalars);
  }
  transpose_panels(m.w, m.t, m.rows, m.columns, j.column, j.columns, j.row, j.rows);
  if (!bf16) return;
  round_panels(m.w, m.wb, m.rows, j.column / 64, (j.column + j.columns) / 64, j.row, j.row + j.rows);
  round_panels(m.t, m.tb, m.columns, j.row / 64, (j.row + j.rows) / 64, j.column, j.column + j.columns);
}

void run_jobs(int w, const std::vector<Job>& all_of) {
  barrier.wait();  // both halves of the tokens are there
  for (int i = next_job++; i < static_cast<int>(all_of.size()); i = next_job++) run_job(w, all_of[i]);
  barrier.wait();
  if (w == 0) next_job = 0;
}

// Along the longer side, in whole panels.
void cut(std::vector<Job>& to, Mat& m, const float* x, const float* dy, int tiles) {
  if (m.rows > m.columns) {
    for (int t = 0; t < tiles; t++) to.push_back({&m, x, dy, t * (m.rows / tiles), m.rows / tiles, 0, m.columns});
    return;
  }
  const int panels = m.columns / 64;
  tiles = std::min(tiles, panels);
  for (int t = 0; t < tiles; t++) {
    const int begin = panels * t / tiles, end = panels * (t + 1) / tiles;
    to.push_back({&m, x, dy, 0, m.rows, begin * 64, (end - begin) * 64});
  }
}

void make_jobs() {
  jobs.assign(C.layers + 1, {});
  for (int i = 0; i < C.layers; i++) {
    Layer& l = N.layers[i];
    cut(jobs[i], l.wf, l.a, N.dx[(C.layers - 1 - i) % 2 ? 2 : 0], 2);
    cut(jobs[i], l.wi, l.h2, N.da, 2);
    cut(jobs[i], l.qkv, l.h1, N.dqkv, 2);
    cut(jobs[i], l.wo, l.seen, N.dx[1], 2);
  }
  cut(jobs.back(), N.logits, N.h, N.dlogits, C.vocab / logits_tile());
}

// --- The step of one worker ---
int part(int w, int n) { return w * (n / kWorkers); }

void embed(int begin, int n) {
  for (int i = begin; i < begin + n; i++)
    for (int k = 0; k < C.d; k += 16)
      store(N.layers[0].x + static_cast<std::size_t>(i) * C.d + k,
            _mm512_add_ps(load(N.embedding.w + static_cast<std::size_t>(N.tokens[i]) * C.d + k),
                          load(N.positions.w + static_cast<std::size_t>(i % C.length) * C.d + k)));
}

void forward_layers(int w) {
  const int n = C.tokens() / kWorkers, begin = part(w, C.tokens()), d = C.d;
  const std::size_t at = static_cast<std::size_t>(begin) * d;
  embed(begin, n);
  Layer& bottom = N.layers[0];
  add_ln(nullptr, bottom.x + at, bottom.h1 + at, bottom.stats1 + 2 * begin, bottom.scale1.w, bottom.bias1.w, n, d);
  for (int i = 0; i < C.layers; i++) {
    Layer& l = N.layers[i];
    const bool top = i + 1 == C.layers;
    forward(w, n, l.h1 + at, l.qkv, l.qkv_out + 3 * at);
    for (int b = begin / C.length; b < (begin + n) / C.length; b++)
      for (int h = 0; h < C.heads; h++) attend(w, l, b, h);
    forward(w, n, l.seen + at, l.wo, l.middle + at);
    add_ln(l.x + at, l.middle + at, l.h2 + at, l.stats2 + 2 * begin, l.scale2.w, l.bias2.w, n, d);
    forward(w, n, l.h2 + at, l.wi, l.a + static_cast<std::size_t>(begin) * C.ff, ERELU);
    float* y = top ? N.x : N.layers[i + 1].x;
    forward(w, n, l.a + static_cast<std::size_t>(begin) * C.ff, l.wf, y + at);
    Layer& next = N.layers[top ? i : i + 1];
    if (top) add_ln(l.middle + at, y + at, N.h + at, N.stats + 2 * begin, N.scale.w, N.bias.w, n, d);
    else add_ln(l.middle + at, y + at, next.h1 + at, next.stats1 + 2 * begin, next.scale1.w, next.bias1.w, n, d);
  }
}

void loss_and_logits(int w) {
  const int n = C.tokens() / kWorkers, begin = part(w, C.tokens()), d = C.d;
  const std::size_t at = static_cast<std::size_t>(begin) * d;
  float *logits = N.dlogits + static_cast<std::size_t>(begin) * C.vocab,
        *norms = N.norm_gradients[w] + 4 * C.layers * d;
  std::memset(N.norm_gradients[w], 0, (4 * C.layers + 2) * d * sizeof(float));
  forward(w, n, N.h + at, N.logits, logits);
  N.loss[w] = 0;
  for (int i = 0; i < n; i++)
    N.loss[w] +=
        xent_row(logits + static_cast<std::size_t>(i) * C.vocab, C.vocab, N.targets[begin + i], 1.f / C.tokens());
  backward(w, n, logits, N.logits, N.dhidden + at);
  run_jobs(w, jobs.back());
  ln_bwd(N.dhidden + at, N.x + at, N.stats + 2 * begin, N.scale.w, nullptr, N.dx[0] + at, norms, norms + d, n, d);
}

// Returns the derivative by what the first layer reads.
const float* backward_layers(int w) {
  const int n = C.tokens() / kWorkers, begin = part(w, C.tokens()), d = C.d;
  const std::size_t at = static_cast<std::size_t>(begin) * d, wide = static_cast<std::size_t>(begin) * C.ff;
  float *in = N.dx[0], *middle = N.dx[1], *out = N.dx[2];
  for (int i = C.layers - 1; i >= 0; i--) {
    Layer& l = N.layers[i];
    float* norms = N.norm_gradients[w] + 4 * i * d;
    backward(w, n, in + at, l.wf, N.da + wide, l.a + wide);
    backward(w, n, N.da + wide, l.wi, N.dh + at);
    ln_bwd(N.dh + at, l.middle + at, l.stats2 + 2 * begin, l.scale2.w, in + at, middle + at, norms + 2 * d,
           norms + 3 * d, n, d);
    backward(w, n, middle + at, l.wo, N.dseen + at);
    for (int b = begin / C.length; b < (begin + n) / C.length; b++)
      for (int h = 0; h < C.heads; h++) attend_back(w, l, b, h);
    backward(w, n, N.dqkv + 3 * at, l.qkv, N.dh + at);
    ln_bwd(N.dh + at, l.x + at, l.stats1 + 2 * begin, l.scale1.w, middle + at, out + at, norms, norms + d, n, d);
    run_jobs(w, jobs[i]);
    std::swap(in, out);
  }
  return in;
}

void add_row(float* sum, const float* row) {
  for (int k = 0; k < C.d; k += 16) store(sum + k, _mm512_add_ps(load(sum + k), load(row + k)));
}
void adam_row(const Mat& m, int row, const float* g) {
  const std::size_t at = static_cast<std::size_t>(row) * C.d;
  adam(m.w + at, m.m + at, m.v + at, g, C.d, scalars);
}

void update_tables(int w, const float* dx) {
  std::vector<float> sum(C.d);
  const auto clear = [&] { std::fill(sum.begin(), sum.end(), 0.f); };
  for (int t = part(w, C.vocab); t < part(w, C.vocab) + C.vocab / kWorkers; t++) {
    clear();
    for (int k = N.start[t]; k < N.start[t + 1]; k++)
      add_row(sum.data(), dx + static_cast<std::size_t>(N.order[k]) * C.d);
    adam_row(N.embedding, t, sum.data());
  }
  for (int t = part(w, C.length); t < part(w, C.length) + C.length / kWorkers; t++) {
    clear();
    for (int b = 0; b < C.batch; b++) add_row(sum.data(), dx + static_cast<std::size_t>(b * C.length + t) * C.d);
    adam_row(N.positions, t, sum.data());
  }
  for (int i = 0; w == 0 && i < 4 * C.layers + 2; i++) {
    clear();
    for (int other = 0; other < kWorkers; other++) add_row(sum.data(), N.norm_gradients[other] + i * C.d);
    Layer& l = N.layers[std::min(i / 4, C.layers - 1)];
    const Mat* norms[] = {&l.scale1, &l.bias1, &l.scale2, &l.bias2};
    adam_row(i < 4 * C.layers ? *norms[i % 4] : i % 2 ? N.bias : N.scale, 0, sum.data());
  }
}

void step(int w) {
  forward_layers(w);
  loss_and_logits(w);
  update_tables(w, backward_layers(w));
  barrier.wait();
}

// --- Set-up ---
std::uint64_t splitmix(std::uint64_t x) {
  std::uint64_t z = x + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}
std::uint64_t stream(int number) { return splitmix((1234ull << 20) + number); }

// Columns from `begin` on of a weight from one stream.
void fill(int number, Mat& m, double deviation, int begin, int columns) {
  const float width = static_cast<float>(2 * std::sqrt(3.0) * deviation);
  const std::uint64_t base = stream(number);
  for (std::size_t i = 0; i < static_cast<std::size_t>(m.rows) * columns; i++) {
    const std::size_t r = i / columns, c = i % columns + begin;
    const std::size_t at = m.t ? c / 64 * 64 * m.rows + r * 64 + c % 64 : r * m.columns + c;
    m.w[at] = (static_cast<float>(splitmix(base + i) >> 40) * 0x1p-24f - 0.5f) * width;
  }
}

void set_weights() {
  const double narrow = std::pow(C.d, -0.5);
  int number = 0;
  const auto whole = [&](Mat& m, double deviation) { fill(number++, m, deviation, 0, m.columns); };
  const auto norm = [&](Mat& scale) {
    std::fill_n(scale.w, C.d, 1.f);  // biases are zeros
    number += 2;
  };
  whole(N.embedding, narrow);
  whole(N.positions, narrow);
  for (Layer& l : N.layers) {
    norm(l.scale1);
    for (int k = 0; k < 3; k++) fill(number++, l.qkv, narrow, k * C.d, C.d);
    whole(l.wo, narrow);
    norm(l.scale2);
    whole(l.wi, narrow);
    whole(l.wf, std::pow(C.ff, -0.5));
  }
  norm(N.scale);
  whole(N.logits, narrow);
  std::vector<Mat*> in_panels = {&N.logits};
  for (Layer& l : N.layers) in_panels.insert(in_panels.end(), {&l.qkv, &l.wo, &l.wi, &l.wf});
  for (Mat* m : in_panels) {
    transpose_panels(m->w, m->t, m->rows, m->columns, 0, m->columns, 0, m->rows);
    if (!bf16) continue;
    round_panels(m->w, m->wb, m->rows, 0, m->columns / 64, 0, m->rows);
    round_panels(m->t, m->tb, m->columns, 0, m->rows / 64, 0, m->columns);
  }
}

void set_tokens() {
  const std::uint64_t base = stream(1000000);
  N.tokens.resize(C.tokens()), N.targets.resize(C.tokens());
  for (int b = 0; b < C.batch; b++)
    for (int i = 0; i <= C.length; i++) {
      const int token = static_cast<int>(splitmix(base + b * (C.length + 1) + i) % C.vocab);
      if (i < C.length) N.tokens[b * C.length + i] = token;
      if (i > 0) N.targets[b * C.length + i - 1] = token;
    }
}

void sort_tokens() {
  N.start.assign(C.vocab + 1, 0), N.order.resize(C.tokens());
  for (const int token : N.tokens) N.start[token + 1]++;
  for (int i = 0; i < C.vocab; i++) N.start[i + 1] += N.start[i];
  std::vector<int> at(N.start.begin(), N.start.end() - 1);
  for (int i = 0; i < C.tokens(); i++) N.order[at[N.tokens[i]]++] = i;
}

void prepare() {
  constexpr std::size_t kPage = 2 << 20;
  plan();
  const std::size_t bytes = (arena.used + kPage) & ~(kPage - 1);
  void* raw = mmap(nullptr, bytes + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  arena.base =
      reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(raw) + kPage - 1) & ~std::uintptr_t(kPage - 1));
  madvise(arena.base, bytes, MADV_HUGEPAGE);
  plan();
  make_jobs();
  set_weights();
  set_tokens();
}

void pin(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

// The second worker: a step whenever it is told.
class Second {
 public:
  Second() : thread_([this] { work(); }) {}
  ~Second() {
    stop_ = true;
    thread_.join();
  }
  void begin() { rounds_.fetch_add(1, std::memory_order_release); }

 private:
  void work() {
    pin(1);
    for (int seen = 0;; seen++) {
      while (rounds_.load(std::memory_order_acquire) == seen) {
        if (stop_) return;
        _mm_pause();
      }
      step(1);
    }
  }
  std::atomic<int> rounds_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void report(std::vector<double> ms, const std::vector<double>& losses, double setup_s) {
  std::sort(ms.begin(), ms.end());
  const std::size_t n = ms.size();
  const double median = n % 2 ? ms[n / 2] : (ms[n / 2 - 1] + ms[n / 2]) / 2;
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  std::printf(
      "{\"system\": \"hand%s\", \"config\": \"%s\", \"mesh\": \"all:1\", \"layout\": \"\", \"ms_per_step\": %.2f, "
      "\"ms_min\": %.2f, \"ms_max\": %.2f, \"steps\": %zu, \"tokens_per_s\": %.1f, \"peak_rss_mb\": %.1f, "
      "\"loss_first\": %.9g, \"loss_last\": %.9g, \"setup_s\": %.3f, \"losses10\": [",
      bf16 ? "-bf16" : "", C.name, median, ms[0], ms[n - 1], n, C.tokens() / median * 1e3,
      static_cast<double>(used.ru_maxrss) / 1024, losses[0], losses.back(), setup_s);
  for (std::size_t i = 0; i < std::min<std::size_t>(10, losses.size()); i++)
    std::printf("%s%.9g", i > 0 ? ", " : "", losses[i]);
  std::printf("]}\n");
}

int run(int steps, int warmup, double begin) {
  prepare();
  pin(0);
  Second second;
  std::vector<double> ms, losses;
  double setup_s = 0;
  for (int s = 0; s < warmup + steps; s++) {
    const double from = now(), first = 1 - std::pow(0.9, s + 1), other = 1 - std::pow(0.999, s + 1);
    scalars = {static_cast<float>(C.rate * std::sqrt(other) / first), static_cast<float>(1e-6 * std::sqrt(other))};
    sort_tokens();
    next_job = 0;
    second.begin();
    step(0);
    const double to = now();
    losses.push_back((N.loss[0] + N.loss[1]) / C.tokens());
    if (s == 0) setup_s = to - begin;
    if (s >= warmup) ms.push_back((to - from) * 1e3);
  }
  report(ms, losses, setup_s);
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "hand_lm --config tiny|small|medium --steps N --warmup N [--bf16 0|1]; it needs two cores with "
               "avx512_bf16\n");
  return 2;
}

}  // namespace
}  // namespace hand

int main(int argc, char** argv) {
  using namespace hand;
  const double begin = now();
  std::string config = "small";
  int steps = 10, warmup = 3;
  for (int i = 1; i < argc; i += 2) {
    const std::string word = argv[i];
    if (i + 1 == argc) return usage();
    if (word == "--config") config = argv[i + 1];
    else if (word == "--steps") steps = std::atoi(argv[i + 1]);
    else if (word == "--warmup") warmup = std::atoi(argv[i + 1]);
    else if (word == "--bf16") bf16 = std::atoi(argv[i + 1]) != 0;
    else return usage();
  }
  for (const Config& c : kConfigs)
    if (config == c.name) C = c;
  if (!C.name || steps < 1 || warmup < 0 || !__builtin_cpu_supports("avx512bf16")) return usage();
  return run(steps, warmup, begin);
}
