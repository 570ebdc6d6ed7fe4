#include "runtime/kernels/pointwise.h"

#include <array>
#include <cmath>

#include "runtime/kernels/pointwise_list.h"
#include "runtime/kernels/vmath.h"

namespace weft {

namespace {

using I = std::int64_t;
using U = std::uint64_t;

I wrapped_add(I x, I y) { return static_cast<I>(static_cast<U>(x) + static_cast<U>(y)); }
I wrapped_subtract(I x, I y) { return static_cast<I>(static_cast<U>(x) - static_cast<U>(y)); }
I wrapped_multiply(I x, I y) { return static_cast<I>(static_cast<U>(x) * static_cast<U>(y)); }

constexpr double kSeluScale = 1.0507009873554804934, kSeluAlpha = 1.6732632423543772848;

// One struct per name of the list: f of doubles, i of integers.
struct identity {
  static double f(double x) { return x; }
  static I i(I x) { return x; }
};
struct negative {
  static double f(double x) { return -x; }
  static I i(I x) { return wrapped_subtract(0, x); }
};
struct abs {
  static double f(double x) { return std::fabs(x); }
  static I i(I x) { return x < 0 ? wrapped_subtract(0, x) : x; }
};
struct sign {
  static double f(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }
  static I i(I x) { return I{x > 0} - I{x < 0}; }
};
struct floor {
  static double f(double x) { return std::floor(x); }
  static I i(I x) { return x; }
};
struct square {
  static double f(double x) { return x * x; }
  static I i(I x) { return wrapped_multiply(x, x); }
};
struct sqrt {
  static double f(double x) { return std::sqrt(x); }
};
struct rsqrt {
  static double f(double x) { return 1 / std::sqrt(x); }
};
struct reciprocal {
  static double f(double x) { return 1 / x; }
};
#define WEFT_FROM_VMATH(name)                            \
  struct name {                                          \
    static double f(double x) { return vmath::name(x); } \
  };
WEFT_FROM_VMATH(exp)
WEFT_FROM_VMATH(expm1)
WEFT_FROM_VMATH(log)
WEFT_FROM_VMATH(log1p)
WEFT_FROM_VMATH(sin)
WEFT_FROM_VMATH(cos)
WEFT_FROM_VMATH(tanh)
WEFT_FROM_VMATH(erf)
WEFT_FROM_VMATH(sigmoid)
WEFT_FROM_VMATH(softplus)
#undef WEFT_FROM_VMATH

// NaN wins, so that it is never lost on the way.
struct minimum {
  static double f(double x, double y) { return x != x ? x : y != y ? y : x < y ? x : y; }
  static I i(I x, I y) { return x < y ? x : y; }
};
struct maximum {
  static double f(double x, double y) { return x != x ? x : y != y ? y : x > y ? x : y; }
  static I i(I x, I y) { return x > y ? x : y; }
};
struct relu {
  static double f(double x) { return maximum::f(x, 0); }
};
struct elu {
  static double f(double x) { return x > 0 ? x : vmath::expm1(x); }
};
struct selu {
  static double f(double x) { return x > 0 ? kSeluScale * x : kSeluScale * kSeluAlpha * vmath::expm1(x); }
};
struct logical_not {
  static I i(I x) { return I{x == 0}; }
};
struct add {
  static double f(double x, double y) { return x + y; }
  static I i(I x, I y) { return wrapped_add(x, y); }
};
struct subtract {
  static double f(double x, double y) { return x - y; }
  static I i(I x, I y) { return wrapped_subtract(x, y); }
};
struct multiply {
  static double f(double x, double y) { return x * y; }
  static I i(I x, I y) { return wrapped_multiply(x, y); }
};
struct divide {
  static double f(double x, double y) { return x / y; }
};
struct pow {
  static double f(double x, double y) { return vmath::exp(y * vmath::log(x)); }
};
struct floordiv {
  static double f(double x, double y) { return std::floor(x / y); }
  static I i(I x, I y) {
    if (y == 0) return 0;
    if (y == -1) return wrapped_subtract(0, x);
    const I q = x / y;
    return q - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
  }
};
struct mod {
  static double f(double x, double y) { return x - y * std::floor(x / y); }
  static I i(I x, I y) { return y == 0 || y == -1 ? 0 : x - floordiv::i(x, y) * y; }
};
struct logical_and {
  static I i(I x, I y) { return I{x != 0 && y != 0}; }
};
struct logical_or {
  static I i(I x, I y) { return I{x != 0 || y != 0}; }
};
#define WEFT_COMPARISON(name, sign)                                  \
  struct name {                                                      \
    static double f(double x, double y) { return double(x sign y); } \
    static I i(I x, I y) { return I{x sign y}; }                     \
  };
WEFT_COMPARISON(less, <)
WEFT_COMPARISON(less_equal, <=)
WEFT_COMPARISON(greater, >)
WEFT_COMPARISON(greater_equal, >=)
WEFT_COMPARISON(equal, ==)
WEFT_COMPARISON(not_equal, !=)
#undef WEFT_COMPARISON

const std::array kTable = {
#define WEFT_BOTH(name) Pointwise{#name, 1, name::f, nullptr, name::i, nullptr},
#define WEFT_FLOATS(name) Pointwise{#name, 1, name::f, nullptr, nullptr, nullptr},
#define WEFT_INTEGERS(name) Pointwise{#name, 1, nullptr, nullptr, name::i, nullptr},
    WEFT_POINTWISE_UNARY(WEFT_BOTH, WEFT_FLOATS, WEFT_INTEGERS)
#undef WEFT_BOTH
#undef WEFT_FLOATS
#undef WEFT_INTEGERS
#define WEFT_BOTH(name) Pointwise{#name, 2, nullptr, name::f, nullptr, name::i},
#define WEFT_FLOATS(name) Pointwise{#name, 2, nullptr, name::f, nullptr, nullptr},
#define WEFT_INTEGERS(name) Pointwise{#name, 2, nullptr, nullptr, nullptr, name::i},
        WEFT_POINTWISE_BINARY(WEFT_BOTH, WEFT_FLOATS, WEFT_INTEGERS) WEFT_POINTWISE_COMPARISON(WEFT_BOTH)
#undef WEFT_BOTH
#undef WEFT_FLOATS
#undef WEFT_INTEGERS
};

}  // namespace

const Pointwise* find_pointwise(std::string_view name) {
  for (const Pointwise& function : kTable)
    if (function.name == name) return &function;
  return nullptr;
}

}  // namespace weft
