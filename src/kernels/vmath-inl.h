// Elementary functions of our own, each written once over a value type V: float or double, one number or a vector of
// them. Only + - * /, sqrt, fma, rounding and bit patterns inside, and no contraction, so that a function of f32 has the
// same bits on every machine; but exp, and what is made of it, where the machine has one of its own (kHasMachine). Coefficients are given per precision.
//
// Text without includes, in the operations of kernels/scalar-inl.h and kernels/highway-inl.h. Both headers include it,
// and kernels/cuda_source.h gives it to NVRTC. Bounds are against the exact value: of f32 in units in the last place
// (ulp) of the result, over all floats, beyond the half that any rounding costs; of f64 relative.

// The constant of V's precision.
template <class V>
WEFT_FN V per(double wide, float narrow) {
  if constexpr (kIsF32<V>) return set<V>(narrow);
  else return set<V>(wide);
}
template <class V>
constexpr int kMantissa = kIsF32<V> ? 23 : 52;  // its stored bits
template <class V>
WEFT_FN V infinity() {
  return as_float<V>(set<Wholes<V>>(kIsF32<V> ? 0x7f800000 : 0x7ff0000000000000));
}
template <class V>
WEFT_FN V nan() {
  return as_float<V>(set<Wholes<V>>(kIsF32<V> ? 0x7fc00000 : 0x7ff8000000000000));
}

// c0 + c1 x + c2 x^2 + …, by Horner's rule. Long ones are split into odd and even powers: two chains, half as long.
template <class V, class C>
WEFT_FN V polynomial(V, C c) {
  return set<V>(c);
}
template <class V, class C, class... More>
WEFT_FN V polynomial(V x, C c, More... more) {
  return fma(polynomial(x, more...), x, set<V>(c));
}

// ---- exp

// x = n ln 2 + r, and tail = exp(r) - 1 - r.
template <class V>
struct ExpParts {
  Wholes<V> n;
  V r, tail;
};
template <class V>
WEFT_FN ExpParts<V> exp_parts(V x) {
  const V shift = per<V>(0x1.8p52, 0x1.8p23f);  // its last place is 1: adding it rounds, and leaves n in the low bits
  const V shifted = fma(x, per<V>(1.44269504088896340736, 1.44269504088896340736f), shift);
  const V f = shifted - shift;
  const V r = nfma(f, per<V>(1.90821492927058770002e-10, -1.90465429995776804525e-09f),
                   nfma(f, per<V>(6.93147180369123816490e-01, 0.693147182464599609375f), x));
  const V z = r * r;
  V p;  // (exp(r) - 1 - r) / r^2 for |r| <= ln 2 / 2; error of r^2 times it below 4e-9 and 2^-56
  if constexpr (kIsF32<V>)
    p = polynomial(r, 5.000000095e-01f, 1.666651804e-01f, 4.166620412e-02f, 8.369005473e-03f, 1.395065589e-03f);
  else
    p = fma(polynomial(z, 1.0 / 6, 1.0 / 120, 1.0 / 5040, 1.0 / 362880, 1.0 / 39916800, 1.0 / 6227020800.0), r,
            polynomial(z, 1.0 / 2, 1.0 / 24, 1.0 / 720, 1.0 / 40320, 1.0 / 3628800, 1.0 / 479001600));
  return {bits(shifted) - bits(shift), r, z * p};
}

// 2^n for exponents n of normal floats.
template <class V>
WEFT_FN V power_of_two(Wholes<V> n) {
  return as_float<V>(shift_left<kMantissa<V>>(n + set<Wholes<V>>(kIsF32<V> ? 127 : 1023)));
}

// 1.02 ulp; 4e-16. Subnormal results lose their own low bits.
template <class V>
WEFT_FN V exp(V x) {
  if constexpr (kHasMachine<V>) return machine_exp(x);
  x = larger(per<V>(-745.2, -104.0f), smaller(per<V>(709.8, 89.0f), x));
  const ExpParts<V> parts = exp_parts(x);
  const V p = set<V>(1) + (parts.r + parts.tail);
  const Wholes<V> half = shift_right<1>(parts.n);
  return (p * power_of_two<V>(half)) * power_of_two<V>(parts.n - half);
}

// 2 ulp; 1e-15.
template <class V>
WEFT_FN V expm1(V x) {
  const ExpParts<V> parts = exp_parts(larger(per<V>(-40.0, -20.0f), smaller(per<V>(709.8, 89.0f), x)));
  // 2 (2^(n-1) (r + tail) + 2^(n-1) - 1/2): n may be one more than the largest exponent.
  const V scale = power_of_two<V>(parts.n - set<Wholes<V>>(1));
  const V half = fma(scale, parts.r + parts.tail, scale - set<V>(0.5));
  return choose(less(magnitude(x), per<V>(0x1p-54, 0x1p-25f)), x, half + half);
}

// ---- log

// n ln 2 + log(1 + f).
template <class V>
WEFT_FN V log_of_parts(V n, V f) {
  const V z = f * f;
  V p;  // (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2); error of f^2 times it below 1e-9 and 8e-18
  if constexpr (kIsF32<V>)
    p = polynomial(f, 3.333331057e-01f, -2.499998672e-01f, 2.000222038e-01f, -1.666923983e-01f, 1.421874829e-01f,
                   -1.238458652e-01f, 1.187268189e-01f, -1.178833181e-01f, 6.914043284e-02f);
  else
    p = fma(
        polynomial(z, -2.49999999999999306e-01, -1.66666666666973051e-01, -1.24999999971092665e-01,
                   -9.99999999631727005e-02, -8.33334505641320361e-02, -7.14223204915847010e-02,
                   -6.26503186951806318e-02, -5.36828038805054822e-02, -6.12956198072790587e-02,
                   -2.50612280952824638e-02),
        f,
        polynomial(z, 3.33333333333333370e-01, 1.99999999999932232e-01, 1.42857142875917387e-01,
                   1.11111109098410724e-01, 9.09091987599820184e-02, 7.69198812013374977e-02, 6.67198555527129117e-02,
                   5.83701835146499884e-02, 5.37187789066478003e-02, 5.66642324205217998e-02));
  V y = (f * z) * p;
  y = fma(n, per<V>(1.90821492927058770002e-10, -2.12194440e-4f), y);
  y = nfma(set<V>(0.5), z, y);
  return fma(n, per<V>(6.93147180369123816490e-01, 0.693359375f), f + y);
}

// x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), for normal x above 0.
template <class V>
struct LogParts {
  Wholes<V> n;
  V f;
};
template <class V>
WEFT_FN LogParts<V> log_parts(V x) {
  const Wholes<V> root_half = set<Wholes<V>>(kIsF32<V> ? 0x3f3504f3 : 0x3fe6a09e667f3bcd);
  const Wholes<V> all = bits(x), n = shift_right<kMantissa<V>>(all - root_half);
  return {n, as_float<V>(all - shift_left<kMantissa<V>>(n)) - set<V>(1)};
}

// y = log(x), and what log gives outside of the positive numbers, and at infinity.
template <class V>
WEFT_FN V with_log_ends(V x, V y) {
  const V outside = choose(equal(x, set<V>(0)), minus(infinity<V>()), nan<V>());
  return choose(less(set<V>(0), x), choose(equal(x, infinity<V>()), infinity<V>(), y), outside);
}

// The logarithm of normal numbers above 0.
template <class V>
WEFT_FN V log_of_normal(V x) {
  const LogParts<V> parts = log_parts(x);
  return log_of_parts(to_float<V>(parts.n), parts.f);
}

// 1 ulp; 4e-16, but 1e-15 near 1, where it cancels.
template <class V>
WEFT_FN V log(V x) {
  const auto subnormal = less(x, per<V>(0x1p-1022, 0x1p-126f));
  const LogParts<V> parts = log_parts(choose(subnormal, x * per<V>(0x1p54, 0x1p25f), x));
  const V n = to_float<V>(parts.n) - choose(subnormal, per<V>(54.0, 25.0f), set<V>(0));
  return with_log_ends(x, log_of_parts(n, parts.f));
}

// 2 ulp; 1e-15. u = 1 + x, and what its rounding lost is put back.
template <class V>
WEFT_FN V log1p(V x) {
  const V one = set<V>(1), u = one + x;
  const V lost = choose(less(one, x), one - (u - x), x - (u - one));
  const LogParts<V> parts = log_parts(u);
  const Wholes<V> down = minus(smaller(parts.n, set<Wholes<V>>(100)));  // beyond that nothing was lost that shows
  const V f = fma(lost, power_of_two<V>(down), parts.f);
  const V y = with_log_ends(u, log_of_parts(to_float<V>(parts.n), f));
  return choose(less(magnitude(x), per<V>(0x1p-54, 0x1p-25f)), x, y);
}

// ---- through exp and log

// x / y for y >= 1.
template <class V>
WEFT_FN V over(V x, V y) {
  if constexpr (kHasMachine<V>) return x * machine_reciprocal(y);
  return x / y;
}

// 2 ulp; 2e-15. A polynomial near 0, 1 - 2 / (exp(2|x|) + 1) elsewhere.
template <class V>
WEFT_FN V tanh(V x) {
  const V one = set<V>(1), a = magnitude(x), z = x * x;
  V p;
  if constexpr (kIsF32<V>)
    p = polynomial(z, -3.333333091e-01f, 1.333320991e-01f, -5.394721589e-02f, 2.170300661e-02f, -8.182727326e-03f,
                   2.147554049e-03f);
  else
    p = polynomial(z, -3.33333333333333315e-01, 1.33333333333330417e-01, -5.39682539678969925e-02,
                   2.18694885190083045e-02, -8.86323510324087821e-03, 3.59212175115496222e-03, -1.45577541204780546e-03,
                   5.89660657775704336e-04, -2.37590649605556203e-04, 9.25711612955676871e-05, -3.12011014257974025e-05,
                   6.48516348279311301e-06);
  const V near = fma(x * z, p, x);
  const V far = one - over(set<V>(2), exp(a + a) + one);
  return with_sign(choose(less(a, set<V>(0.625)), near, far), x);
}

// 2 ulp; 3e-15. A polynomial near 0, 1 - exp(-t (1 + g(t))) elsewhere.
template <class V>
WEFT_FN V erf(V x) {
  const V a = magnitude(x), z = x * x, t = smaller(per<V>(6.0, 4.0f), a);
  V p, g;
  if constexpr (kIsF32<V>) {
    p = polynomial(z, 1.283791666e-01f, -3.761263352e-01f, 1.128369123e-01f, -2.685912006e-02f, 5.200260771e-03f,
                   -8.133216086e-04f, 8.327489748e-05f);
    g = polynomial(t, 1.285517475e-01f, 6.356252726e-01f, 1.052627002e-01f, -2.267413883e-02f, 2.930157847e-03f,
                   -4.958682550e-05f, -4.558117328e-05f, 4.938213410e-06f);
  } else {
    p = polynomial(z, 1.28379167095512586e-01, -3.76126389031837538e-01, 1.12837916709550734e-01,
                   -2.68661706451177491e-02, 5.22397762526331886e-03, -8.54832700933842791e-04, 1.20553322663231578e-04,
                   -1.49256260159144355e-05, 1.64615461733317705e-06, -1.63567043929697508e-07, 1.47072297790493293e-08,
                   -1.15751895629882922e-09, 6.33460346885253456e-11);
    g = polynomial(t - set<V>(2), 1.68247063230831873e+00, 8.67845086843049840e-01, 2.79528774903713244e-02,
                   -5.74387967676921827e-03, 1.08656166557847579e-03, -1.77081139539343887e-04, 2.08859000572678834e-05,
                   -8.97366281934135863e-08, -9.31220430517733822e-07, 3.63797795967787192e-07,
                   -9.53111301916165683e-08, 1.87440987779401658e-08, -2.38112108561494211e-09,
                   -6.98115525714416286e-11, 1.61798800597493034e-10, -6.20172343633759604e-11, 1.62027569441973310e-11,
                   -3.22863667564413173e-12, 4.93158605844930294e-13, -5.57980551325325664e-14, 4.35912648357739047e-15,
                   -2.03573169486485983e-16, 3.59822494230949264e-18, 5.50167321384097795e-20);
  }
  const V near = fma(x, p, x);
  const V far = set<V>(1) - exp(minus(fma(t, g, t)));
  return choose(less(a, set<V>(0.93)), near, with_sign(far, x));
}

// 3 ulp; 1e-15. 1 / (1 + exp(-x)), without overflow.
template <class V>
WEFT_FN V sigmoid(V x) {
  const V one = set<V>(1), e = exp(minus(magnitude(x)));
  return over(choose(less(x, set<V>(0)), e, one), one + e);
}

// x / (1 + exp(-2 t)), t = sqrt(2 / pi) (x + 0.044715 x^3), which is x (1 + tanh(t)) / 2; and its derivative. 160 ulp where
// gelu is next to nothing (x < -5), 4 elsewhere; the derivative 20 ulp of 1.
template <class V>
WEFT_FN V gelu_gate(V x) {
  const V cubic = fma(x * x, per<V>(0.0713548162726002526, 0.0713548162726002526f),
                      per<V>(1.59576912160573071, 1.59576912160573071f));
  return sigmoid(x * cubic);
}
template <class V>
WEFT_FN V gelu(V x) {
  return choose(less(x, set<V>(-40)), minus(set<V>(0)), x * gelu_gate(x));  // -infinity times 0 is none
}
template <class V>
WEFT_FN V gelu_slope(V x) {
  const V gate = gelu_gate(x), near = larger(set<V>(-40), smaller(set<V>(40), x));
  const V inner = fma(near * near, per<V>(0.214064448817800758, 0.214064448817800758f),
                      per<V>(1.59576912160573071, 1.59576912160573071f));
  return fma(near * gate * (set<V>(1) - gate), inner, gate);
}

// 3 ulp; 2e-15. log(1 + exp(x)), without overflow.
template <class V>
WEFT_FN V softplus(V x) {
  return larger(set<V>(0), x) + log1p(exp(minus(magnitude(x))));
}

// ---- in double, where f32 would lose too much on the way: 1 ulp

// sin(x + quarters pi / 2) of doubles. pi/2 is in three parts: the remainder r is good to 1e-16 for |x| < 1e12. Beyond
// 1e15 no digit of r is left; it is kept in range, so that the result stays within [-1, 1].
template <class V>
WEFT_FN V turned_sin(V x, int quarters) {
  const V n = round(x * set<V>(0.636619772367581343076));
  V r = nfma(n, set<V>(1.57079632679489655800e+00), x);
  r = nfma(n, set<V>(6.12323399573676603587e-17), r);
  r = nfma(n, set<V>(-1.49738490485916983294e-33), r);
  const V most = set<V>(0.78539816339744830962);
  r = larger(minus(most), smaller(most, r));
  const V four = set<V>(4), one = set<V>(1);
  const V turned = (n - four * floor(n / four)) + set<V>(quarters);
  const V quarter = choose(less(turned, four), turned, turned - four);
  const V z = r * r;
  const V sin_tail = polynomial(z, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0,
                                -1.0 / 1307674368000.0, 1.0 / 355687428096000.0);
  const V cos_tail = polynomial(z, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600,
                                -1.0 / 87178291200.0, 1.0 / 20922789888000.0, -1.0 / 6402373705728000.0);
  const V sine = fma(sin_tail * z, r, r);
  const V cosine = fma(cos_tail * z, z, nfma(set<V>(0.5), z, one));
  const V y = choose(either(equal(quarter, one), equal(quarter, set<V>(3))), cosine, sine);
  const V turned_y = choose(less(quarter, set<V>(2)), y, minus(y));
  return choose(less(magnitude(x), infinity<V>()), turned_y, nan<V>());
}
struct TurnedSin {
  int quarters;
  template <class V>
  WEFT_FN V operator()(V x) const {
    return turned_sin(x, quarters);
  }
};
// Absolute error of f64 below 3e-16 for |x| < 1e6.
template <class V>
WEFT_FN V sin(V x) {
  return in_double(TurnedSin{0}, x);
}
template <class V>
WEFT_FN V cos(V x) {
  return in_double(TurnedSin{1}, x);
}

struct InverseSinh {
  template <class V>
  WEFT_FN V operator()(V x) const {
    const V one = set<V>(1), a = magnitude(x), z = a * a;
    const V near = log1p(a + z / (one + sqrt(one + z)));
    const V far = log(a) + set<V>(0.693147180559945309417);  // 1 is lost beside a^2
    return with_sign(choose(less(a, set<V>(0x1p28)), near, far), x);
  }
};
// log(x + sqrt(1 + x^2)), odd and without cancellation. 1 ulp; 1e-15.
template <class V>
WEFT_FN V asinh(V x) {
  return in_double(InverseSinh{}, x);
}

struct Power {
  template <class V>
  WEFT_FN V operator()(V x, V y) const {
    return exp(y * log(x));
  }
};
// x^y for x > 0.
template <class V>
WEFT_FN V pow(V x, V y) {
  return in_double(Power{}, x, y);
}

// A quotient that f32 rounds up to a whole number would have another floor.
struct FloorOfQuotient {
  template <class V>
  WEFT_FN V operator()(V x, V y) const {
    return floor(x / y);
  }
};
struct Remainder {
  template <class V>
  WEFT_FN V operator()(V x, V y) const {
    return x - y * floor(x / y);
  }
};

// x / y rounded towards minus infinity. Of integers: 0 where y is 0.
template <class V>
WEFT_FN V floordiv(V x, V y) {
  if constexpr (kIsWhole<V>) {
    const V quotient = choose(equal(y, set<V>(-1)), minus(x), floor_quotient(x, y));
    return choose(equal(y, set<V>(0)), set<V>(0), quotient);
  } else {
    return in_double(FloorOfQuotient{}, x, y);
  }
}
// x - y floordiv(x, y). Of integers: 0 where y is 0.
template <class V>
WEFT_FN V mod(V x, V y) {
  if constexpr (kIsWhole<V>) return choose(equal(y, set<V>(0)), set<V>(0), x - floordiv(x, y) * y);
  else return in_double(Remainder{}, x, y);
}

// ---- normal deviates, of doubles

// Rounded after each step. Not fma: the draws of a seed stay what they are.
template <class V>
WEFT_FN V stepwise(V, double c) {
  return set<V>(c);
}
template <class V, class... More>
WEFT_FN V stepwise(V x, double c, More... more) {
  return stepwise(x, more...) * x + set<V>(c);
}

// Wichura's AS 241, |p - 0.5| < 0.425 and beyond: the number below which a normal deviate falls with probability p,
// 2^-26 <= p <= 1 - 2^-26. 1e-15.
template <class V>
WEFT_FN V inverse_normal_near(V p) {
  const V q = p - set<V>(0.5), r = set<V>(0.180625) - q * q;
  const V above =
      stepwise(r, 3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
               4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3);
  const V below =
      stepwise(r, 1.0, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
               2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3);
  return q * (above / below);
}
template <class V>
WEFT_FN V inverse_normal_far(V p) {
  const auto low = less(p - set<V>(0.5), set<V>(0));
  const V r = sqrt(minus(log_of_normal(choose(low, p, set<V>(1) - p)))) - set<V>(1.6);
  const V above = stepwise(r, 1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
                           3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4);
  const V below = stepwise(r, 1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
                           1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
                           1.05075007164441684324e-9);
  const V x = above / below;
  return choose(low, minus(x), x);
}
