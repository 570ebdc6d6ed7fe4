#include "runtime/kernels/pointwise.h"

#include <array>
#include <cmath>

#include "runtime/kernels/vmath.h"

namespace weft {

namespace {

using I = std::int64_t;
using U = std::uint64_t;

// NaN wins, so that it is never lost on the way.
double minimum(double x, double y) { return x != x ? x : y != y ? y : x < y ? x : y; }
double maximum(double x, double y) { return x != x ? x : y != y ? y : x > y ? x : y; }
double mod(double x, double y) { return x - y * std::floor(x / y); }

I floordiv(I x, I y) {
  if (y == 0) return 0;
  if (y == -1) return static_cast<I>(-static_cast<U>(x));
  const I q = x / y;
  return q - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
}
I mod(I x, I y) { return y == 0 || y == -1 ? 0 : x - floordiv(x, y) * y; }
I wrapped_add(I x, I y) { return static_cast<I>(static_cast<U>(x) + static_cast<U>(y)); }
I wrapped_subtract(I x, I y) { return static_cast<I>(static_cast<U>(x) - static_cast<U>(y)); }
I wrapped_multiply(I x, I y) { return static_cast<I>(static_cast<U>(x) * static_cast<U>(y)); }

constexpr double kSeluScale = 1.0507009873554804934, kSeluAlpha = 1.6732632423543772848;
double elu(double x) { return x > 0 ? x : vmath::expm1(x); }

Pointwise unary(std::string_view name, double (*f)(double), I (*i)(I) = nullptr) {
  return {name, 1, f, nullptr, i, nullptr};
}
Pointwise binary(std::string_view name, double (*f)(double, double), I (*i)(I, I) = nullptr) {
  return {name, 2, nullptr, f, nullptr, i};
}

const std::array kTable = {
    unary(
        "identity", [](double x) { return x; }, [](I x) { return x; }),
    unary(
        "negative", [](double x) { return -x; }, [](I x) { return wrapped_subtract(0, x); }),
    unary(
        "abs", [](double x) { return std::fabs(x); }, [](I x) { return x < 0 ? wrapped_subtract(0, x) : x; }),
    unary(
        "sign", [](double x) { return x > 0   ? 1.0
                                      : x < 0 ? -1.0
                                              : x; }, [](I x) { return I{x > 0} - I{x < 0}; }),
    unary(
        "floor", [](double x) { return std::floor(x); }, [](I x) { return x; }),
    unary(
        "square", [](double x) { return x * x; }, [](I x) { return wrapped_multiply(x, x); }),
    unary("sqrt", [](double x) { return std::sqrt(x); }),
    unary("rsqrt", [](double x) { return 1 / std::sqrt(x); }),
    unary("reciprocal", [](double x) { return 1 / x; }),
    unary("exp", vmath::exp),
    unary("expm1", vmath::expm1),
    unary("log", vmath::log),
    unary("log1p", vmath::log1p),
    unary("sin", vmath::sin),
    unary("cos", vmath::cos),
    unary("tanh", vmath::tanh),
    unary("erf", vmath::erf),
    unary("sigmoid", vmath::sigmoid),
    unary("softplus", vmath::softplus),
    unary("relu", [](double x) { return maximum(x, 0); }),
    unary("elu", elu),
    unary("selu", [](double x) { return x > 0 ? kSeluScale * x : kSeluScale * kSeluAlpha * vmath::expm1(x); }),
    unary("logical_not", nullptr, [](I x) { return I{x == 0}; }),
    binary(
        "add", [](double x, double y) { return x + y; }, wrapped_add),
    binary(
        "subtract", [](double x, double y) { return x - y; }, wrapped_subtract),
    binary(
        "multiply", [](double x, double y) { return x * y; }, wrapped_multiply),
    binary("divide", [](double x, double y) { return x / y; }),
    binary("pow", [](double x, double y) { return vmath::exp(y * vmath::log(x)); }),
    binary("minimum", minimum, [](I x, I y) { return x < y ? x : y; }),
    binary("maximum", maximum, [](I x, I y) { return x > y ? x : y; }),
    binary(
        "floordiv", [](double x, double y) { return std::floor(x / y); }, floordiv),
    binary("mod", mod, mod),
    binary(
        "less", [](double x, double y) { return double(x < y); }, [](I x, I y) { return I{x < y}; }),
    binary(
        "less_equal", [](double x, double y) { return double(x <= y); }, [](I x, I y) { return I{x <= y}; }),
    binary(
        "greater", [](double x, double y) { return double(x > y); }, [](I x, I y) { return I{x > y}; }),
    binary(
        "greater_equal", [](double x, double y) { return double(x >= y); }, [](I x, I y) { return I{x >= y}; }),
    binary(
        "equal", [](double x, double y) { return double(x == y); }, [](I x, I y) { return I{x == y}; }),
    binary(
        "not_equal", [](double x, double y) { return double(x != y); }, [](I x, I y) { return I{x != y}; }),
    binary("logical_and", nullptr, [](I x, I y) { return I{x != 0 && y != 0}; }),
    binary("logical_or", nullptr, [](I x, I y) { return I{x != 0 || y != 0}; }),
};

}  // namespace

const Pointwise* find_pointwise(std::string_view name) {
  for (const Pointwise& function : kTable)
    if (function.name == name) return &function;
  return nullptr;
}

}  // namespace weft
