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
constexpr bool kHasExp = false;
template <>
inline constexpr bool kHasExp<float> = true;
// Eight instructions, one of them the card's power of two; the polynomial of vmath-inl.h takes three times as long.
WEFT_FN float machine_exp(float x) { return ::expf(x); }
WEFT_FN long long bits_of(double x) { return __double_as_longlong(x); }
WEFT_FN float from_bits(int x) { return __int_as_float(x); }
WEFT_FN double from_bits(long long x) { return __longlong_as_double(x); }
