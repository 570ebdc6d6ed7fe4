// Device functions for steps of decoding: short kernels, in which clusters of blocks share what one block would be slow with.
#include "runtime/cuda/prelude.h"

namespace weft::cuda {

namespace {

// Blocks of a cluster, and each other's shared memory. On cards without clusters a cluster is one block.
constexpr const char* kClusters = R"cuda(
__device__ inline void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");  // threads of a warp may come apart
#endif
}
// The word at the same place of the shared memory of another block of the cluster.
__device__ inline unsigned word_of_block(const void* place, int block) {
  unsigned x = *(const unsigned*)place;
#if __CUDA_ARCH__ >= 900
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(block));
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(x) : "r"(there) : "memory");
#endif
  return x;
}
__device__ inline float of_block(const float* place, int block) { return __uint_as_float(word_of_block(place, block)); }
)cuda";

// Products of few rows x[m, k] with the rows of a large matrix w[n, k] (few_rows.cc). Numbers along k are multiplied in
// another order than they lie: lane t of four has 8 neighbours, for two products of tiles. store(m, n, sum) gets each result once.
constexpr const char* kFewRows = R"cuda(
struct alignas(16) Words { unsigned v[4]; };

// Past the cache of the multiprocessor: it may hold lines from before an earlier kernel wrote them, since this kernel may
// have been started before that one had ended (which also forbids loads of "constant" memory).
__device__ inline Words streamed(const BF16* from) {
  Words x;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.v[0]), "=r"(x.v[1]), "=r"(x.v[2]), "=r"(x.v[3]) : "l"(from));
  return x;
}
__device__ inline void add_tile(float (&sum)[4], const Words& upper, const Words& lower, const Words& x, int half) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(upper.v[2 * half]), "r"(lower.v[2 * half]), "r"(upper.v[2 * half + 1]), "r"(lower.v[2 * half + 1]),
        "r"(x.v[2 * half]), "r"(x.v[2 * half + 1]));
}
template <int Tiles, int Groups, int Warps, int Parts, bool Early, class Store>
__device__ inline void few_rows(const BF16* w, const BF16* x, int depth, int rows, long long w_step, long long x_step,
                                Store store) {
  constexpr int Each = Tiles < 4 ? 4 / Tiles : 1, Stride = Warps * Parts, Sums = Tiles * Groups * 4 * 32;
  __shared__ float sums[Warps * Sums];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  const int part = blockIdx.x % Parts, pieces = depth / 32, first = part * Warps + warp;
  const long long tile = blockIdx.x / Parts * (16 * Tiles);
  const BF16* own = w + (tile + g) * w_step + 8 * t;
  Words a[Each][Tiles][2];
  const auto load = [&](int piece) {
#pragma unroll
    for (int u = 0; u < Each; ++u) {
      const bool is_there = piece + u * Stride < pieces;
#pragma unroll
      for (int i = 0; i < 2 * Tiles; ++i)
        a[u][i / 2][i % 2] = is_there ? streamed(own + 8 * i * w_step + 32ll * (piece + u * Stride)) : Words{};
    }
  };
  if (!Early) wait_for_earlier();
  load(first);
  if (Early) wait_for_earlier();
  float sum[Tiles][Groups][4] = {};
  for (int piece = first; piece < pieces; piece += Each * Stride) {
    Words now[Each][Tiles][2], b[Each][Groups];
#pragma unroll
    for (int u = 0; u < Each; ++u) {
#pragma unroll
      for (int i = 0; i < 2 * Tiles; ++i) now[u][i / 2][i % 2] = a[u][i / 2][i % 2];
#pragma unroll
      for (int j = 0; j < Groups; ++j)
        b[u][j] = piece + u * Stride < pieces && 8 * j + g < rows
                      ? streamed(x + (8 * j + g) * x_step + 32ll * (piece + u * Stride) + 8 * t) : Words{};
    }
    load(piece + Each * Stride);
#pragma unroll
    for (int u = 0; u < Each; ++u)
#pragma unroll
      for (int i = 0; i < Tiles; ++i)
#pragma unroll
        for (int j = 0; j < Groups; ++j) {
          add_tile(sum[i][j], now[u][i][0], now[u][i][1], b[u][j], 0);
          add_tile(sum[i][j], now[u][i][0], now[u][i][1], b[u][j], 1);
        }
  }
#pragma unroll
  for (int i = 0; i < Tiles; ++i)
#pragma unroll
    for (int j = 0; j < Groups; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[warp * Sums + ((i * Groups + j) * 4 + e) * 32 + lane] = sum[i][j][e];
  __syncthreads();
  for (int e = threadIdx.x; e < Sums; e += 32 * Warps) {
    float all = sums[e];
#pragma unroll
    for (int other = 1; other < Warps; ++other) all += sums[other * Sums + e];
    sums[e] = all;
  }
  if (Parts > 1) cluster_sync();
  else __syncthreads();
  for (int e = part * (32 * Warps) + threadIdx.x; e < 16 * Tiles * rows; e += 32 * Warps * Parts) {
    const int n = e % (16 * Tiles), m = e / (16 * Tiles);
    const float* place = sums + (((n / 16) * Groups + m / 8) * 4 + n % 16 / 8 * 2 + m % 2) * 32 + n % 8 * 4 + m % 8 / 2;
    float all = *place;
    if (Parts > 1) {
      all = of_block(place, 0);
#pragma unroll
      for (int other = 1; other < Parts; ++other) all += of_block(place, other);
    }
    store(m, tile + n, all);
  }
  if (Parts > 1) cluster_sync();
}
)cuda";

// Attention of one query (attend_step.cc) over the keys before `end`: Lanes threads have the numbers of a key, a warp has
// Each keys for each of its 32 / Lanes groups under way. Groups, warps and blocks have own softmaxes, which are joined in
// order. k_at(m), v_at(m): where key and value m begin.
constexpr const char* kAttendStep = R"cuda(
// What a sum of weights is multiplied with when scores are taken relative to a larger one.
__device__ inline float shrunk(float from, float to) { return from == to ? 1.0f : e_to(from - to); }

template <int Lanes, int Each, int Warps, int Parts, class T, class K, class V, class Y, class Total>
__device__ inline void attend_step(const T* q, K k_at, V v_at, int end, float scale, Y write, Total write_total) {
  constexpr int N = 16 / sizeof(T), Keys = 32 / Lanes, Stride = Warps * Parts * Keys * Each;
  const float NONE = __uint_as_float(0xff800000u);
  __shared__ float tops[Warps], totals[Warps], rows[Warps][Lanes * N], whole[Lanes * N + 2];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, d = lane % Lanes * N, part = blockIdx.x % Parts;
  float own[N], largest = NONE, sum = 0, acc[N] = {};
  const Pack<T, N> packed = *(const Pack<T, N>*)(q + d);
  WEFT_EACH(i, N) own[i] = get(packed.v[i]) * scale;
  for (int m0 = (part * Warps + warp) * Keys * Each; m0 < end; m0 += Stride) {
    Pack<T, N> k[Each], v[Each];
    WEFT_EACH(u, Each) {
      const int m = m0 + u * Keys + lane / Lanes;
      k[u] = m < end ? *(const Pack<T, N>*)(k_at(m) + d) : Pack<T, N>{};
      v[u] = m < end ? *(const Pack<T, N>*)(v_at(m) + d) : Pack<T, N>{};
    }
    float score[Each], now = largest;
    WEFT_EACH(u, Each) {
      float a = 0;
      WEFT_EACH(i, N) a = multiply_add(own[i], get(k[u].v[i]), a);
#pragma unroll
      for (int o = Lanes / 2; o > 0; o /= 2) a += __shfl_xor_sync(0xffffffffu, a, o);
      score[u] = m0 + u * Keys + lane / Lanes < end ? a : NONE;
      now = score[u] > now ? score[u] : now;
    }
    const float shrink = shrunk(largest, now);
    largest = now;
    sum *= shrink;
    WEFT_EACH(i, N) acc[i] *= shrink;
    WEFT_EACH(u, Each) {
      const float p = score[u] == NONE ? 0.0f : e_to(score[u] - now);
      sum += p;
      WEFT_EACH(i, N) acc[i] = multiply_add(p, get(v[u].v[i]), acc[i]);
    }
  }
#pragma unroll
  for (int o = Lanes; o < 32; o *= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, largest, o), now = other > largest ? other : largest;
    const float mine = shrunk(largest, now), its = shrunk(other, now);
    sum = sum * mine + __shfl_xor_sync(0xffffffffu, sum, o) * its;
    WEFT_EACH(i, N) acc[i] = acc[i] * mine + __shfl_xor_sync(0xffffffffu, acc[i], o) * its;
    largest = now;
  }
  if (lane < Lanes) WEFT_EACH(i, N) rows[warp][d + i] = acc[i];
  if (lane == 0) tops[warp] = largest, totals[warp] = sum;
  __syncthreads();
  float top = tops[0], total = 0;
#pragma unroll
  for (int w = 1; w < Warps; ++w) top = tops[w] > top ? tops[w] : top;
#pragma unroll
  for (int w = 0; w < Warps; ++w) total += totals[w] * shrunk(tops[w], top);
  for (int e = threadIdx.x; e < Lanes * N; e += 32 * Warps) {
    float a = 0;
#pragma unroll
    for (int w = 0; w < Warps; ++w) a += rows[w][e] * shrunk(tops[w], top);
    whole[2 + e] = a;
  }
  if (threadIdx.x == 0) whole[0] = top, whole[1] = total;
  if (Parts > 1) cluster_sync();
  else __syncthreads();
  if (part == 0)
    for (int e = threadIdx.x; e < Lanes * N; e += 32 * Warps) {
      float a = whole[2 + e];
      if (Parts > 1) {
        float its[Parts];
        WEFT_EACH(p, Parts) its[p] = of_block(whole, p);
        top = its[0];
        WEFT_EACH(p, Parts) top = its[p] > top ? its[p] : top;
        total = a = 0;
        WEFT_EACH(p, Parts) {
          const float factor = shrunk(its[p], top);
          total += of_block(whole + 1, p) * factor;
          a += of_block(whole + 2 + e, p) * factor;
        }
      }
      write(e, total == 0 ? 0.0f : a / total);
      if (e == 0) write_total(top, total);
    }
  if (Parts > 1) cluster_sync();
}
)cuda";

constexpr const char* kBest = R"cuda(
// The best of a line's elements by a cluster of blocks: better(a, i, b, j) tells whether element i, of value a, comes before
// j, of value b; the order is total. Every thread of the first block gets the place, -1 if the line is empty.
template <int Warps, int Parts, class A, class Get, class Better>
__device__ inline int best_of_line(int length, Get value_at, Better better) {
  __shared__ int places[Warps];
  const int part = blockIdx.x % Parts, warp = threadIdx.x / 32;
  int best = -1;
  A most{};
  const auto take = [&](A value, int place) {
    if (place >= 0 && (best < 0 || better(value, place, most, best))) most = value, best = place;
  };
  constexpr int Stride = 32 * Warps * Parts;
  constexpr int Each = 8;  // loads under way
  for (int first = part * 32 * Warps + threadIdx.x; first < length; first += Each * Stride) {
    A values[Each];
    WEFT_EACH(u, Each) values[u] = first + u * Stride < length ? value_at(first + u * Stride) : A{};
    WEFT_EACH(u, Each) if (first + u * Stride < length) take(values[u], first + u * Stride);
  }
#pragma unroll
  for (int o = 16; o > 0; o /= 2) {
    const A value = __shfl_xor_sync(0xffffffffu, most, o);
    const int place = __shfl_xor_sync(0xffffffffu, best, o);
    take(value, place);
  }
  if (threadIdx.x % 32 == 0) places[warp] = best;
  __syncthreads();
  for (int w = 0; w < Warps; ++w)
    if (const int place = places[w]; place >= 0) take(value_at(place), place);
  if (Parts == 1) return best;
  __syncthreads();
  if (threadIdx.x == 0) places[0] = best;
  cluster_sync();
  if (part == 0)
    for (int p = 1; p < Parts; ++p)
      if (const int place = (int)word_of_block(places, p); place >= 0) take(value_at(place), place);
  cluster_sync();
  return best;
}
)cuda";

}  // namespace

std::string decode_prelude() { return std::string(kClusters) + kFewRows + kAttendStep + kBest; }

}  // namespace weft::cuda
