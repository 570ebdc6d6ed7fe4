// The operations that vmath-inl.h and pointwise-inl.h are written in, over single numbers: float, double and Wrapped
// integers. Text without includes: kernels/vmath.h includes it for the host, kernels/cuda_source.h gives it to NVRTC. The
// machine says before it: WEFT_FN, fused, rooted, floored, rounded, bits_of, from_bits, and kHasMachine<V>: whether it has
// machine_exp(V) and machine_reciprocal(V), 1 ulp in f32, for all numbers.

// An integer that wraps when it overflows.
template <class T>
struct Wrapped {
  T v;
  Wrapped() = default;
  WEFT_FN explicit constexpr Wrapped(T value) : v(value) {}
};
template <class T>
constexpr bool kIsWhole = false;
template <class T>
constexpr bool kIsWhole<Wrapped<T>> = true;
template <class T>
constexpr bool kIsF32 = false;
template <>
inline constexpr bool kIsF32<float> = true;

template <class T>
struct UnsignedOf {
  using Type = unsigned;
};
template <>
struct UnsignedOf<long long> {
  using Type = unsigned long long;
};
template <class T>
using Unsigned = typename UnsignedOf<T>::Type;

template <class T>
WEFT_FN Wrapped<T> operator+(Wrapped<T> x, Wrapped<T> y) {
  return Wrapped<T>(static_cast<T>(static_cast<Unsigned<T>>(x.v) + static_cast<Unsigned<T>>(y.v)));
}
template <class T>
WEFT_FN Wrapped<T> operator-(Wrapped<T> x, Wrapped<T> y) {
  return Wrapped<T>(static_cast<T>(static_cast<Unsigned<T>>(x.v) - static_cast<Unsigned<T>>(y.v)));
}
template <class T>
WEFT_FN Wrapped<T> operator*(Wrapped<T> x, Wrapped<T> y) {
  return Wrapped<T>(static_cast<T>(static_cast<Unsigned<T>>(x.v) * static_cast<Unsigned<T>>(y.v)));
}
template <class T>
WEFT_FN bool operator<(Wrapped<T> x, Wrapped<T> y) {
  return x.v < y.v;
}
template <class T>
WEFT_FN bool operator<=(Wrapped<T> x, Wrapped<T> y) {
  return x.v <= y.v;
}
template <class T>
WEFT_FN bool operator==(Wrapped<T> x, Wrapped<T> y) {
  return x.v == y.v;
}

// The number c as a V.
template <class V, class C>
WEFT_FN V set(C c) {
  return static_cast<V>(c);
}

template <class V>
WEFT_FN bool less(V x, V y) {
  return x < y;
}
template <class V>
WEFT_FN bool less_equal(V x, V y) {
  return x <= y;
}
template <class V>
WEFT_FN bool equal(V x, V y) {
  return x == y;
}
WEFT_FN bool both(bool a, bool b) { return a && b; }
WEFT_FN bool either(bool a, bool b) { return a || b; }
WEFT_FN bool opposite(bool a) { return !a; }
template <class V>
WEFT_FN V choose(bool condition, V yes, V no) {
  return condition ? yes : no;
}

// The second if either is NaN, or if they are equal.
template <class V>
WEFT_FN V smaller(V x, V y) {
  return x < y ? x : y;
}
template <class V>
WEFT_FN V larger(V x, V y) {
  return y < x ? x : y;
}
// x if it is NaN.
template <class V>
WEFT_FN V nan_or(V x, V otherwise) {
  return x == x ? otherwise : x;
}
template <class T>
WEFT_FN Wrapped<T> nan_or(Wrapped<T>, Wrapped<T> otherwise) {
  return otherwise;
}

// ---- floats

template <class V>
struct WholesOf {
  using Type = Wrapped<int>;
};
template <>
struct WholesOf<double> {
  using Type = Wrapped<long long>;
};
// Signed integers as wide as the floats V.
template <class V>
using Wholes = typename WholesOf<V>::Type;

template <class V>
WEFT_FN Wholes<V> bits(V x) {
  return Wholes<V>(bits_of(x));
}
template <class V>
WEFT_FN V as_float(Wholes<V> x) {
  return from_bits(x.v);
}
// The float of an integer that it holds exactly.
template <class V>
WEFT_FN V to_float(Wholes<V> x) {
  return static_cast<V>(x.v);
}
template <int kPlaces, class T>
WEFT_FN Wrapped<T> shift_left(Wrapped<T> x) {
  return Wrapped<T>(static_cast<T>(static_cast<Unsigned<T>>(x.v) << kPlaces));
}
// Keeps the sign.
template <int kPlaces, class T>
WEFT_FN Wrapped<T> shift_right(Wrapped<T> x) {
  return Wrapped<T>(x.v >> kPlaces);
}

// x y + z and z - x y, rounded once.
template <class V>
WEFT_FN V fma(V x, V y, V z) {
  return fused(x, y, z);
}
template <class V>
WEFT_FN V nfma(V x, V y, V z) {
  return fused(-x, y, z);
}
template <class V>
WEFT_FN V sqrt(V x) {
  return rooted(x);
}
// To the nearest whole number, ties to even.
template <class V>
WEFT_FN V round(V x) {
  return rounded(x);
}
template <class V>
WEFT_FN V floor(V x) {
  return floored(x);
}
template <class V>
WEFT_FN V minus(V x) {
  return -x;
}
template <class V>
WEFT_FN V magnitude(V x) {
  constexpr auto kAllButSign = static_cast<decltype(bits_of(x))>(static_cast<Unsigned<decltype(bits_of(x))>>(-1) >> 1);
  return from_bits(bits_of(x) & kAllButSign);
}
// |x| with the sign of `sign`.
template <class V>
WEFT_FN V with_sign(V x, V sign) {
  constexpr auto kAllButSign = static_cast<decltype(bits_of(x))>(static_cast<Unsigned<decltype(bits_of(x))>>(-1) >> 1);
  return from_bits((bits_of(x) & kAllButSign) | (bits_of(sign) & ~kAllButSign));
}

// f of the numbers as doubles, rounded to V.
template <class F, class V, class... More>
WEFT_FN V in_double(F f, V x, More... more) {
  return static_cast<V>(f(static_cast<double>(x), static_cast<double>(more)...));
}

// ---- integers

template <class T>
WEFT_FN Wrapped<T> floor(Wrapped<T> x) {
  return x;
}
template <class T>
WEFT_FN Wrapped<T> minus(Wrapped<T> x) {
  return Wrapped<T>(0) - x;
}
template <class T>
WEFT_FN Wrapped<T> magnitude(Wrapped<T> x) {
  return x.v < 0 ? minus(x) : x;
}
// x / y rounded towards minus infinity; anything where y is 0 or -1.
template <class T>
WEFT_FN Wrapped<T> floor_quotient(Wrapped<T> x, Wrapped<T> y) {
  if (y.v == 0 || y.v == -1) return x;
  const T quotient = x.v / y.v;
  return Wrapped<T>(quotient - (x.v % y.v != 0 && (x.v < 0) != (y.v < 0) ? 1 : 0));
}
