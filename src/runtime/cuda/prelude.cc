#include "runtime/cuda/prelude.h"

#include "base/str.h"
#include "kernels/cuda_source.h"

namespace weft::cuda {

namespace {

// Stored types, and the types that registers hold: get() reads, put<T>() rounds and writes, keep<T>() rounds a register
// to what a T would hold, cast<T>() converts as Map's "cast" does.
constexpr const char* kTypes = R"cuda(
namespace weft {
using I32 = vmath::Wrapped<int>;
using I64 = vmath::Wrapped<long long>;
struct BF16 { unsigned short bits; };
struct F16 { unsigned short bits; };
struct Bool { unsigned char bits; };
template <class T, int W> struct alignas(sizeof(T) * W) Pack { T v[W]; };

// The same pack, of which the compiler knows nothing: what it computes from it, it does not keep from before.
template <class T, int W> __device__ inline Pack<T, W> hidden(Pack<T, W> x) {
  unsigned* words = (unsigned*)&x;
#pragma unroll
  for (int i = 0; i < (int)sizeof(T) * W / 4; ++i) asm volatile("" : "+r"(words[i]));
  return x;
}

__device__ inline float get(float x) { return x; }
__device__ inline double get(double x) { return x; }
__device__ inline float get(BF16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline float get(F16 x) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits)); return f; }
__device__ inline I32 get(int x) { return I32(x); }
__device__ inline I64 get(long long x) { return I64(x); }
__device__ inline I64 get(unsigned x) { return I64((long long)x); }
__device__ inline I64 get(unsigned char x) { return I64((long long)x); }
__device__ inline I64 get(signed char x) { return I64((long long)x); }
__device__ inline I32 get(Bool x) { return I32(x.bits != 0); }

// In the upper half of the word, the lower one 0: conversions of pairs take an eighth of the time of single ones.
__device__ inline unsigned upper_bf16(float x) {
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return pair;
}
__device__ inline unsigned upper_f16(float x) {
  unsigned pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(x), "f"(0.0f));
  return pair;
}

template <class T> struct Stored {
  __device__ static T of(float x) { return T(x); }
  __device__ static T of(double x) { return T(x); }
};
template <> struct Stored<BF16> {
  __device__ static BF16 of(float x) { return BF16{(unsigned short)(upper_bf16(x) >> 16)}; }
};
template <> struct Stored<F16> {
  __device__ static F16 of(float x) { return F16{(unsigned short)(upper_f16(x) >> 16)}; }
};
template <> struct Stored<int> { __device__ static int of(I32 x) { return x.v; } };
template <> struct Stored<long long> { __device__ static long long of(I64 x) { return x.v; } };
template <> struct Stored<unsigned> { __device__ static unsigned of(I64 x) { return (unsigned)x.v; } };
template <> struct Stored<unsigned char> { __device__ static unsigned char of(I64 x) { return (unsigned char)x.v; } };
template <> struct Stored<signed char> { __device__ static signed char of(I64 x) { return (signed char)x.v; } };
template <> struct Stored<Bool> { __device__ static Bool of(I32 x) { return Bool{(unsigned char)(x.v != 0)}; } };
template <class T, class V> __device__ inline T put(V x) { return Stored<T>::of(x); }
template <class T> struct Kept { template <class V> __device__ static auto of(V x) { return get(put<T>(x)); } };
template <> struct Kept<BF16> { __device__ static float of(float x) { return __uint_as_float(upper_bf16(x)); } };
template <class T, class V> __device__ inline auto keep(V x) { return Kept<T>::of(x); }

// The integer kinds: to a stored T from a float, clamped towards zero, NaN to 0.
template <class T> struct Range;
template <> struct Range<int> { static constexpr long long low = -2147483648ll, high = 2147483647ll; };
template <> struct Range<long long> { static constexpr long long low = -0x7fffffffffffffffll - 1, high = 0x7fffffffffffffffll; };
template <> struct Range<unsigned> { static constexpr long long low = 0, high = 4294967295ll; };
template <> struct Range<unsigned char> { static constexpr long long low = 0, high = 255; };
template <> struct Range<signed char> { static constexpr long long low = -128, high = 127; };
template <class T> __device__ inline T whole_of(double x) {
  if (x != x) return T(0);
  if (x <= (double)Range<T>::low) return (T)Range<T>::low;
  if (x >= (double)Range<T>::high) return (T)Range<T>::high;
  return (T)(long long)x;
}
template <class T> struct Cast {
  __device__ static auto of(float x) { return get(whole_of<T>((double)x)); }
  __device__ static auto of(double x) { return get(whole_of<T>(x)); }
  template <class W> __device__ static auto of(W x) { return get((T)x.v); }
};
template <class F> struct FloatCast {
  __device__ static F of(float x) { return (F)x; }
  __device__ static F of(double x) { return (F)x; }
  template <class W> __device__ static F of(W x) { return (F)(double)x.v; }
};
template <> struct Cast<float> : FloatCast<float> {};
template <> struct Cast<double> : FloatCast<double> {};
template <> struct Cast<BF16> { template <class V> __device__ static float of(V x) { return keep<BF16>(FloatCast<float>::of(x)); } };
template <> struct Cast<F16> { template <class V> __device__ static float of(V x) { return keep<F16>(FloatCast<float>::of(x)); } };
template <> struct Cast<Bool> {
  __device__ static I32 of(float x) { return I32(x != 0); }
  __device__ static I32 of(double x) { return I32(x != 0); }
  template <class W> __device__ static I32 of(W x) { return I32(x.v != 0); }
};
template <class T, class V> __device__ inline auto cast(V x) { return Cast<T>::of(x); }

__device__ inline float widen(float x) { return x; }
__device__ inline double widen(double x) { return x; }
template <class T> __device__ inline long long widen(vmath::Wrapped<T> x) { return x.v; }
// A sum that is kept wide, as the register of a T.
template <class T> struct Narrow { __device__ static auto of(long long x) { return get((T)x); } };
template <> struct Narrow<float> { __device__ static float of(float x) { return x; } };
template <> struct Narrow<double> { __device__ static double of(double x) { return x; } };
template <> struct Narrow<BF16> { __device__ static float of(float x) { return keep<BF16>(x); } };
template <> struct Narrow<F16> { __device__ static float of(float x) { return keep<F16>(x); } };
template <> struct Narrow<Bool> { __device__ static I32 of(long long x) { return I32(x != 0); } };
template <class T, class A> __device__ inline auto narrow(A x) { return Narrow<T>::of(x); }
)cuda";

// Joining numbers; and joining what the threads of a team hold, in one order: every thread gets the result. A team of
// T threads, a power of two, is a part of a warp or a whole block.
constexpr const char* kJoins = R"cuda(
struct JoinSum { template <class A> __device__ A operator()(A x, A y) const { return x + y; } };
struct JoinProduct { template <class A> __device__ A operator()(A x, A y) const { return x * y; } };
struct JoinMax { template <class A> __device__ A operator()(A x, A y) const { return x != x ? x : y != y ? y : y > x ? y : x; } };
struct JoinMin { template <class A> __device__ A operator()(A x, A y) const { return x != x ? x : y != y ? y : y < x ? y : x; } };
template <> __device__ inline float JoinMax::operator()(float x, float y) const {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
template <> __device__ inline float JoinMin::operator()(float x, float y) const {
  float z;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}
template <> __device__ inline long long JoinSum::operator()(long long x, long long y) const {
  return (long long)((unsigned long long)x + (unsigned long long)y);
}
template <> __device__ inline long long JoinProduct::operator()(long long x, long long y) const {
  return (long long)((unsigned long long)x * (unsigned long long)y);
}

template <int T, class Op, class A>
__device__ inline A team_join(A x, Op op, void* shared) {
#pragma unroll
  for (int o = (T < 32 ? T : 32) / 2; o > 0; o /= 2) x = op(x, __shfl_xor_sync(0xffffffffu, x, o));
  if constexpr (T > 32) {
    A* slots = (A*)shared;
    __syncthreads();
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;
    __syncthreads();
    x = slots[0];
#pragma unroll
    for (int i = 1; i < T / 32; ++i) x = op(x, slots[i]);
  }
  return x;
}
)cuda";

// Products of tiles by a block of 256 threads: a tile has T x T numbers, a thread of them R x R, rows y + 16 i and columns
// x + 16 j of its place (x, y). `at`: where rows begin, `step`: from number to number of a row.
constexpr const char* kTiles = R"cuda(
__device__ inline float multiply_add(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ inline double multiply_add(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ inline float e_to(float x) { return ::expf(x); }
__device__ inline double e_to(double x) { return ::exp(x); }
__device__ inline float log_of(float x) { return ::logf(x); }
__device__ inline double log_of(double x) { return ::log(x); }

#define WEFT_EACH(i, count) _Pragma("unroll") for (int i = 0; i < (count); ++i)
constexpr int kTileThreads = 256, kTileDepth = 32;
template <int T> struct TileSizes {
  static constexpr int R = T / 16, kChunk = T * (2 * kTileDepth + 2), kWeights = T * (T + 1);
};

// to[i][n] = the number first + n of row i; zeros where there is none.
template <int T, int N, class W, class X>
__device__ inline void load_rows(W* to, const X* from, const long long* at, int rows, long long step, int first, int depth) {
  for (int e = threadIdx.x; e < T * N; e += kTileThreads) {
    const int i = e / N, n = e % N;
    to[i * (N + 1) + n] = i < rows && first + n < depth ? (W)get(from[at[i] + (first + n) * step]) : (W)0;
  }
}

// sums[i][j] += row i of a . row j of b.
template <int T, class W, class A, class B>
__device__ inline void add_dots(W (&sums)[T / 16][T / 16], const A* a, const long long* a_at, int a_rows, long long a_step,
                                const B* b, const long long* b_at, int b_rows, long long b_step, int depth, W* chunk) {
  constexpr int R = T / 16, N = kTileDepth;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  W* other = chunk + T * (N + 1);
  for (int first = 0; first < depth; first += N) {
    __syncthreads();
    load_rows<T, N>(chunk, a, a_at, a_rows, a_step, first, depth);
    load_rows<T, N>(other, b, b_at, b_rows, b_step, first, depth);
    __syncthreads();
#pragma unroll 8
    for (int n = 0; n < N; ++n) {
      W p[R], q[R];
      WEFT_EACH(i, R) p[i] = chunk[(y + 16 * i) * (N + 1) + n], q[i] = other[(x + 16 * i) * (N + 1) + n];
      WEFT_EACH(i, R) WEFT_EACH(j, R) sums[i][j] = multiply_add(p[i], q[j], sums[i][j]);
    }
  }
}

// sums[i][j] += the sum over c of weights[i][c], or weights[c][i], times the number first + j of row c.
template <int T, bool Turned, class W, class X>
__device__ inline void add_weighted(W (&sums)[T / 16][T / 16], const W* weights, const X* from, const long long* at, int rows,
                                    long long step, int first, int depth, W* chunk) {
  constexpr int R = T / 16;
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  __syncthreads();
  load_rows<T, T>(chunk, from, at, rows, step, first, depth);
  __syncthreads();
#pragma unroll 8
  for (int c = 0; c < T; ++c) {
    W p[R], q[R];
    WEFT_EACH(i, R) {
      p[i] = Turned ? weights[c * (T + 1) + y + 16 * i] : weights[(y + 16 * i) * (T + 1) + c];
      q[i] = chunk[c * (T + 1) + x + 16 * i];
    }
    WEFT_EACH(i, R) WEFT_EACH(j, R) sums[i][j] = multiply_add(p[i], q[j], sums[i][j]);
  }
}

// Joins what the 16 threads of a row of places hold; all get the result.
template <class W, class Op>
__device__ inline W row_join(W v, Op op) {
#pragma unroll
  for (int o = 8; o > 0; o /= 2) v = op(v, __shfl_xor_sync(0xffffffffu, v, o));
  return v;
}
)cuda";

// Kernels that follow each other: one may be started before the one before has ended, and waits here until it has. Where
// they are not launched so, nothing waits.
constexpr const char* kOrder = R"cuda(
__device__ inline void wait_for_earlier() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;" ::: "memory");
#endif
}
)cuda";

// Philox4x32-10 and deviates, as base/philox.h and runtime/random.h have them.
constexpr const char* kRandom = R"cuda(
struct StepWords { unsigned long long seed; unsigned step; unsigned unused; };
__device__ inline unsigned long long mix64(unsigned long long x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
__device__ inline unsigned philox_word(unsigned long long key, unsigned long long element, unsigned step, unsigned iteration) {
  const unsigned long long block = element / 4;
  unsigned c0 = (unsigned)block, c1 = (unsigned)(block >> 32), c2 = step, c3 = iteration;
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned a0 = 0xD2511F53u * c0, a1 = __umulhi(0xD2511F53u, c0);
    const unsigned b0 = 0xCD9E8D57u * c2, b1 = __umulhi(0xCD9E8D57u, c2);
    c0 = b1 ^ c1 ^ k0;
    c2 = a1 ^ c3 ^ k1;
    c1 = b0;
    c3 = a0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const unsigned which = (unsigned)(element % 4);
  return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}
__device__ inline double inverse_normal(double p) {
  const double q = p - 0.5;
  return q > -0.425 && q < 0.425 ? vmath::inverse_normal_near(p) : vmath::inverse_normal_far(p);
}
}  // namespace weft
using namespace weft;
)cuda";

}  // namespace

std::string kernel_prelude() { return str(cuda_pointwise_source(), kTypes, kJoins, kTiles, kOrder, decode_prelude(), kRandom); }

}  // namespace weft::cuda
