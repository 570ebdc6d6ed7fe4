// The functions of CUDA that vmath-inl.h and pointwise-inl.h use: the beginning of the source that
// kernels/cuda_source.h gives to NVRTC. Text: no host compiles it. Compile with --fmad=false: a sum of a product must
// round twice, as on the CPU.
#define WEFT_FN __device__ inline

namespace weft::vmath {

WEFT_FN float fused(float x, float y, float z) { return __fmaf_rn(x, y, z); }
WEFT_FN double fused(double x, double y, double z) { return __fma_rn(x, y, z); }
WEFT_FN float rooted(float x) { return __fsqrt_rn(x); }
WEFT_FN double rooted(double x) { return __dsqrt_rn(x); }
WEFT_FN float floored(float x) { return ::floorf(x); }
WEFT_FN double floored(double x) { return ::floor(x); }
WEFT_FN float rounded(float x) { return ::rintf(x); }
WEFT_FN double rounded(double x) { return ::rint(x); }
WEFT_FN int bits_of(float x) { return __float_as_int(x); }
template <class V>
constexpr bool kHasMachine = false;
template <>
inline constexpr bool kHasMachine<float> = true;
// Eight instructions, one of them the card's power of two, as in the expf of CUDA; the polynomial of vmath-inl.h takes three
// times as long. x = n ln 2 + r, and n + 127 lies in the low bits of `shifted`; outside of the range of floats it stays at
// the ends, where the product gives 0 or infinity.
WEFT_FN float machine_exp(float x) {
  const float shifted = __fmaf_rd(__saturatef(__fmaf_rn(x, 0.0057249800302088261f, 0.5f)), 252.0f, 12582913.0f);
  const float r = __fmaf_rn(x, 1.925963033500011079e-08f, __fmaf_rn(x, 1.4426950216293334961f, 12583039.0f - shifted));
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(r));
  return power * __int_as_float(__float_as_int(shifted) << 23);
}
// For results that are normal floats.
WEFT_FN float machine_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
WEFT_FN long long bits_of(double x) { return __double_as_longlong(x); }
WEFT_FN float from_bits(int x) { return __int_as_float(x); }
WEFT_FN double from_bits(long long x) { return __longlong_as_double(x); }
