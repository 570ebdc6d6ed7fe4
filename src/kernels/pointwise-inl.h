// Every pointwise function, declared once: what it is called, what it takes and gives, what it costs, its algebra and
// its body. All rooms read this text. The verifier, the cost model, the rules of partial values and constant folding
// read it by the table of kernels/pointwise.h. The reference reads it over doubles and int64, the CPU engine over
// Highway vectors and CUDA as source (kernels/cuda_source.h).
//
//   WEFT_UNARY(name, takes, gives, flops per element, algebra, body)     the body is a formula in x
//   WEFT_BINARY(name, takes, gives, flops per element, algebra, body)    in x and y, which have one dtype
//
// `math` is the vmath of the value type V of x and y. A body that gives kTruth gives a mask. Words of the other columns:
// kernels/pointwise.h. The includer defines the two macros; this file undefines them.

// ---- one operand
WEFT_UNARY(identity, kAny, kSame, 0, kAdditive | kIncreasing | kIdentity, x)
WEFT_UNARY(negative, kNumbers, kSame, 1, kAdditive | kRoundsOnce | kUndoesItself, math::minus(x))
WEFT_UNARY(abs, kNumbers, kSame, 1, kNone, math::magnitude(x))
WEFT_UNARY(sign, kNumbers, kSame, 1, kIncreasing,
           math::choose(math::less(math::set<V>(0), x), math::set<V>(1),
                        math::choose(math::less(x, math::set<V>(0)), math::set<V>(-1), x)))
WEFT_UNARY(floor, kNumbers, kSame, 1, kIncreasing, math::floor(x))
WEFT_UNARY(square, kNumbers, kSame, 1, kNone, (x * x))
WEFT_UNARY(sqrt, kFloats, kSame, 1, kNone, math::sqrt(x))
WEFT_UNARY(rsqrt, kFloats, kSame, 1, kNone, math::set<V>(1) / math::sqrt(x))  // f32: 2 ulp
WEFT_UNARY(reciprocal, kFloats, kSame, 1, kNone, math::set<V>(1) / x)
WEFT_UNARY(exp, kFloats, kSame, 8, kIncreasing, math::exp(x))
WEFT_UNARY(expm1, kFloats, kSame, 8, kIncreasing, math::expm1(x))
WEFT_UNARY(log, kFloats, kSame, 8, kNone, math::log(x))
WEFT_UNARY(log1p, kFloats, kSame, 8, kNone, math::log1p(x))
WEFT_UNARY(sin, kFloats, kSame, 8, kNone, math::sin(x))
WEFT_UNARY(cos, kFloats, kSame, 8, kNone, math::cos(x))
WEFT_UNARY(asinh, kFloats, kSame, 8, kIncreasing, math::asinh(x))
WEFT_UNARY(tanh, kFloats, kSame, 8, kIncreasing, math::tanh(x))
WEFT_UNARY(erf, kFloats, kSame, 8, kIncreasing, math::erf(x))
WEFT_UNARY(sigmoid, kFloats, kSame, 8, kIncreasing, math::sigmoid(x))
WEFT_UNARY(softplus, kFloats, kSame, 8, kIncreasing, math::softplus(x))
WEFT_UNARY(relu, kFloats, kSame, 1, kIncreasing, math::nan_or(x, math::larger(x, math::set<V>(0))))
WEFT_UNARY(elu, kFloats, kSame, 8, kIncreasing, math::choose(math::less(math::set<V>(0), x), x, math::expm1(x)))
WEFT_UNARY(selu, kFloats, kSame, 8, kIncreasing,
           math::choose(math::less(math::set<V>(0), x), math::set<V>(1.0507009873554804934) * x,
                        math::set<V>(1.0507009873554804934 * 1.6732632423543772848) * math::expm1(x)))
WEFT_UNARY(gelu, kFloats, kSame, 12, kNone, math::gelu(x))  // the tanh form
WEFT_UNARY(gelu_slope, kFloats, kSame, 16, kNone, math::gelu_slope(x))
WEFT_UNARY(logical_not, kBools, kTruth, 1, kNone, math::equal(x, math::set<V>(0)))

// ---- two operands
WEFT_BINARY(add, kNumbers, kSame, 1, kAdditive | kShiftsFirst | kShiftsSecond | kRoundsOnce | kZeroFirst | kZeroSecond,
            x + y)
WEFT_BINARY(subtract, kNumbers, kSame, 1, kAdditive | kShiftsFirst | kRoundsOnce | kZeroSecond, x - y)
WEFT_BINARY(multiply, kNumbers, kSame, 1, kLinearInEach | kScales | kRoundsOnce | kOneFirst | kOneSecond, (x * y))
WEFT_BINARY(divide, kFloats, kSame, 1, kLinearInFirst | kRoundsOnce | kOneSecond, x / y)
WEFT_BINARY(pow, kFloats, kSame, 8, kNone, math::pow(x, y))
// NaN wins, so that it is never lost.
WEFT_BINARY(minimum, kNumbers, kSame, 1, kJoinsMin, math::nan_or(x, math::smaller(x, y)))
WEFT_BINARY(maximum, kNumbers, kSame, 1, kJoinsMax, math::nan_or(x, math::larger(x, y)))
WEFT_BINARY(floordiv, kNumbers, kSame, 1, kNone, math::floordiv(x, y))
WEFT_BINARY(mod, kNumbers, kSame, 1, kNone, math::mod(x, y))
WEFT_BINARY(logical_and, kBools, kTruth, 1, kNone,
            math::opposite(math::either(math::equal(x, math::set<V>(0)), math::equal(y, math::set<V>(0)))))
WEFT_BINARY(logical_or, kBools, kTruth, 1, kNone,
            math::opposite(math::both(math::equal(x, math::set<V>(0)), math::equal(y, math::set<V>(0)))))
WEFT_BINARY(less, kAny, kTruth, 1, kNone, math::less(x, y))
WEFT_BINARY(less_equal, kAny, kTruth, 1, kNone, math::less_equal(x, y))
WEFT_BINARY(greater, kAny, kTruth, 1, kNone, math::less(y, x))
WEFT_BINARY(greater_equal, kAny, kTruth, 1, kNone, math::less_equal(y, x))
WEFT_BINARY(equal, kAny, kTruth, 1, kNone, math::equal(x, y))
WEFT_BINARY(not_equal, kAny, kTruth, 1, kNone, math::opposite(math::equal(x, y)))  // NaN is not equal to itself

#undef WEFT_UNARY
#undef WEFT_BINARY
