// Functions of single elements.
#include <algorithm>
#include <numbers>

#include "judge/judge.h"

namespace weft::judge {

namespace {

using I = std::int64_t;

// --- One operand ---

enum class Kind { kRounded, kFunction };  // one correctly rounded operation, or a function that is right to a few units

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
double gelu(double x) { return x < -40 ? -0.0 : x * sigmoid(std::sqrt(8 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }
double gelu_slope(double x) {
  const double near = std::fmax(-40, std::fmin(40, x)), scale = std::sqrt(8 / std::numbers::pi);
  const double gate = sigmoid(scale * (x + 0.044715 * x * x * x));
  return gate + near * gate * (1 - gate) * scale * (1 + 3 * 0.044715 * near * near);
}
double elu(double x) { return x > 0 ? x : std::expm1(x); }
double selu(double x) {
  constexpr double kScale = 1.0507009873554804934, kAlpha = 1.6732632423543772848;
  return x > 0 ? kScale * x : kScale * kAlpha * std::expm1(x);
}

// The most that f moves within x - e … x + e, where f is monotone on both sides of x.
template <class F>
double spread(const F& f, double x, double y, double e) {
  if (e == 0 || e == kUnknown) return e;
  const double low = f(x - e), high = f(x + e);
  return std::isnan(low) || std::isnan(high) ? kUnknown : std::max(std::fabs(low - y), std::fabs(high - y));
}

Rule real(double (*f)(double), Kind kind) {
  return [f, kind](const Call& call) {
    const Value& x = call.x();
    Writer out(call.arithmetic, call.y());
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double y = f(x.f[k]), e = spread(f, x.f[k], y, x.error[k]);
      if (kind == Kind::kRounded) out.rounded(k, y, e);
      else out.function(k, y, e);
    }
  };
}

// Sine and cosine move by no more than their argument, and by 2 at most.
Rule wave(double (*f)(double)) {
  return [f](const Call& call) {
    const Value& x = call.x();
    Writer out(call.arithmetic, call.y());
    for (std::size_t k = 0; k < x.size(); ++k)
      out.function(k, f(x.f[k]), x.error[k] == kUnknown ? kUnknown : std::min(x.error[k], 2.0));
  };
}

// A function that moves by at most 1.2 times its argument, and is right to some units of 1.
Rule gentle(double (*f)(double)) {
  return [f](const Call& call) {
    const Value& x = call.x();
    Writer out(call.arithmetic, call.y());
    const double own = 32 * call.arithmetic.inner(call.y().dtype);
    for (std::size_t k = 0; k < x.size(); ++k) {
      const double tail = own * std::fmin(std::fabs(x.f[k]), 1);
      out.function(k, f(x.f[k]), x.error[k] == kUnknown ? kUnknown : 1.2 * x.error[k] + (f == gelu ? tail : own));
    }
  };
}

void reciprocal(const Call& call, double (*root)(double)) {
  const Value& x = call.x();
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x.f[k], y = 1 / root(v);
    if (std::fabs(v) <= x.error[k] || v == 0) out.exactly(k, y, kUnknown);  // either sign of zero
    else out.function(k, y, spread([&](double t) { return 1 / root(t); }, v, y, x.error[k]));
  }
}

// A function of whole numbers and of floats that only moves, negates or squares.
Rule both(double (*f)(double), I (*i)(I)) {
  return [f, i, rule = real(f, Kind::kRounded)](const Call& call) {
    const Value& x = call.x();
    if (x.is_real()) return rule(call);
    Writer out(call.arithmetic, call.y());
    for (std::size_t k = 0; k < x.size(); ++k) out.whole(k, i(x.i[k]), x.known(k));
  };
}

I negated(I x) { return static_cast<I>(0 - static_cast<std::uint64_t>(x)); }

// Between floor(x - e) and floor(x + e).
void floors(const Call& call) {
  const Value& x = call.x();
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double e = x.error[k], v = std::floor(x.f[k]);
    out.exactly(k, v, e == 0 ? 0 : std::floor(x.f[k] + e) - std::floor(x.f[k] - e));
  }
}

void signs(const Call& call) {
  const Value& x = call.x();
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x.f[k], e = x.error[k];
    out.exactly(k, v > 0 ? 1 : v < 0 ? -1 : v, e > 0 && std::fabs(v) <= e ? (e == kUnknown ? kUnknown : 2) : 0);
  }
}

// --- Casts ---

// Towards zero; outside of the range its ends, and 0 for NaN.
I whole_of(double x, DType dtype) {
  const auto within = [&](double low, double high, I lowest, I highest) {
    return std::isnan(x) ? I{0} : x <= low ? lowest : x >= high ? highest : static_cast<I>(x);
  };
  switch (dtype) {
    case DType::kI32:
      return within(-0x1p31, 0x1p31 - 1, std::numeric_limits<std::int32_t>::min(),
                    std::numeric_limits<std::int32_t>::max());
    case DType::kU32: return within(0, 0x1p32 - 1, 0, std::numeric_limits<std::uint32_t>::max());
    case DType::kU8: return within(0, 255, 0, 255);
    case DType::kI8: return within(-128, 127, -128, 127);
    case DType::kBool: return x != 0;
    default: return within(-0x1p63, 0x1p63, std::numeric_limits<I>::min(), std::numeric_limits<I>::max());
  }
}

void cast_real(const Call& call) {
  const Value& x = call.x();
  Writer out(call.arithmetic, call.y());
  const DType to = call.y().dtype;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double v = x.f[k], e = x.error[k];
    if (!is_float(to)) {
      const I low = whole_of(v - e, to), high = whole_of(v + e, to);
      const bool zero = to == DType::kBool && e > 0 && std::fabs(v) <= e;
      out.whole(k, whole_of(v, to), e == 0 || (std::isfinite(e) && low == high && !zero));
      continue;
    }
    // Where both ends round to one number that number is certain.
    const double low = call.arithmetic.rounded(v - e, to), high = call.arithmetic.rounded(v + e, to);
    const double at = call.arithmetic.rounded(v, to);
    if (e == kUnknown || e == 0) out.exactly(k, at, e);
    else if (call.arithmetic.unit(x.dtype) >= call.arithmetic.unit(to)) out.exactly(k, v, e);
    else out.exactly(k, at, std::max(high - at, at - low));
  }
}

void casts(const Call& call) {
  const Value& x = call.x();
  if (x.is_real()) return cast_real(call);
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < x.size(); ++k)
    if (call.y().is_real())
      out.exactly(k, call.arithmetic.rounded(static_cast<double>(x.i[k]), call.y().dtype), x.error[k]);
    else out.whole(k, x.i[k], x.known(k));
}

// --- Two operands ---

template <class Visit>
void pairs(const Call& call, const Visit& visit) {
  Walk walk(call.y().shape, {&call.y().shape, &call.x(0).shape, &call.x(1).shape});
  walk.each([&](const I* at) {
    visit(static_cast<std::size_t>(at[0]), static_cast<std::size_t>(at[1]), static_cast<std::size_t>(at[2]));
  });
}

using Real2 = double (*)(double, double);
using Error2 = double (*)(double x, double y, double ex, double ey);
using Whole2 = I (*)(I, I);

Rule arithmetic(Real2 f, Error2 error, Whole2 whole) {
  return [=](const Call& call) {
    const Value &x = call.x(0), &y = call.x(1);
    Writer out(call.arithmetic, call.y());
    pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
      if (!x.is_real()) return out.whole(k, whole(x.i[i], y.i[j]), x.known(i) && y.known(j));
      const double ex = x.error[i], ey = y.error[j], v = f(x.f[i], y.f[j]);
      out.rounded(k, v, ex == kUnknown || ey == kUnknown ? kUnknown : error(x.f[i], y.f[j], ex, ey));
    });
  };
}

double both_errors(double, double, double ex, double ey) { return ex + ey; }
double product_error(double x, double y, double ex, double ey) {
  const double a = ey == 0 ? 0 : std::fabs(x) * ey, b = ex == 0 ? 0 : std::fabs(y) * ex;
  return a + b + ex * ey;
}
double quotient_error(double x, double y, double ex, double ey) {
  if (std::fabs(y) <= ey || y == 0) return kUnknown;  // either sign of zero
  return (ex + (ey == 0 ? 0 : std::fabs(x / y) * ey)) / (std::fabs(y) - ey);
}
double larger_error(double, double, double ex, double ey) { return std::max(ex, ey); }

double larger(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y); }
double smaller(double x, double y) { return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y); }

I added(I x, I y) { return static_cast<I>(static_cast<std::uint64_t>(x) + static_cast<std::uint64_t>(y)); }
I subtracted(I x, I y) { return static_cast<I>(static_cast<std::uint64_t>(x) - static_cast<std::uint64_t>(y)); }
I multiplied(I x, I y) { return static_cast<I>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(y)); }
// Division by zero gives 0.
I floor_divided(I x, I y) {
  if (y == 0) return 0;
  if (y == -1) return negated(x);
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
I remainder(I x, I y) { return y == 0 || y == -1 ? 0 : x - floor_divided(x, y) * y; }

// exp(y log x): what the logarithm errs counts y times.
void powers(const Call& call) {
  const Value &x = call.x(0), &y = call.x(1);
  Writer out(call.arithmetic, call.y());
  pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
    const double a = x.f[i], b = y.f[j], ex = x.error[i], ey = y.error[j], v = std::pow(a, b);
    if (!(a > ex) || ey == kUnknown) return out.exactly(k, v, kUnknown);
    const double log = std::fabs(std::log(a)), own = 8 * out.unit() * (1 + std::fabs(b) * log);
    out.function(k, v, v * std::expm1(std::fabs(b) * ex / (a - ex) + (log + ex / (a - ex)) * ey + own));
  });
}

// By how much the floor of x / y may be off.
double jump_of(double x, double y, double ex, double ey, double unit) {
  const double e = quotient_error(x, y, ex, ey) + 2 * std::fabs(x / y) * unit;
  return std::isfinite(e) ? std::floor(x / y + e) - std::floor(x / y - e) : kUnknown;
}

void floordivs(const Call& call) {
  const Value &x = call.x(0), &y = call.x(1);
  Writer out(call.arithmetic, call.y());
  pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
    if (!x.is_real()) return out.whole(k, floor_divided(x.i[i], y.i[j]), x.known(i) && y.known(j));
    const double a = x.f[i], b = y.f[j], ex = x.error[i], ey = y.error[j];
    if (ex == 0 && ey == 0)
      return out.exactly(k, std::floor(call.arithmetic.rounded(a / b, x.dtype)), b == 0 ? kUnknown : 0);
    out.exactly(k, std::floor(a / b), jump_of(a, b, ex, ey, out.unit()));
  });
}

void mods(const Call& call) {
  const Value &x = call.x(0), &y = call.x(1);
  Writer out(call.arithmetic, call.y());
  pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
    if (!x.is_real()) return out.whole(k, remainder(x.i[i], y.i[j]), x.known(i) && y.known(j));
    const double a = x.f[i], b = y.f[j], ex = x.error[i], ey = y.error[j];
    // Whole numbers come out exactly, others as the roundings on the way have it.
    if (ex == 0 && ey == 0 && b != 0 && a == std::floor(a) && b == std::floor(b) && std::fabs(a) < 1 / out.unit())
      return out.exactly(k, a - b * std::floor(a / b), 0);
    const double many = std::floor(a / b), e = ex + std::fabs(many) * ey;
    out.exactly(k, a - b * many,
                e + std::fabs(b) * jump_of(a, b, ex, ey, out.unit()) + 3 * out.unit() * (std::fabs(a) + std::fabs(b)));
  });
}

// --- Truth ---

// Numbers that are the same here are one number that was moved about, and the same everywhere.
bool can_tell(double x, double y, double ex, double ey) {
  if (ex == kUnknown || ey == kUnknown) return false;
  return x == y || ex + ey == 0 || !(std::fabs(x - y) <= ex + ey);
}

template <class Compare>
Rule comparison(Compare compare) {
  return [compare](const Call& call) {
    const Value &x = call.x(0), &y = call.x(1);
    Writer out(call.arithmetic, call.y());
    pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
      if (!x.is_real()) return out.whole(k, compare(x.i[i], y.i[j]), x.known(i) && y.known(j));
      out.whole(k, compare(x.f[i], y.f[j]), can_tell(x.f[i], y.f[j], x.error[i], y.error[j]));
    });
  };
}

Rule logical(bool all) {
  return [all](const Call& call) {
    const Value &x = call.x(0), &y = call.x(1);
    Writer out(call.arithmetic, call.y());
    pairs(call, [&](std::size_t k, std::size_t i, std::size_t j) {
      const bool a = x.i[i] != 0, b = y.i[j] != 0;
      const bool decided = (x.known(i) && a != all) || (y.known(j) && b != all);  // by one operand alone
      out.whole(k, all ? a && b : a || b, decided || (x.known(i) && y.known(j)));
    });
  };
}

void logical_not(const Call& call) {
  const Value& x = call.x();
  Writer out(call.arithmetic, call.y());
  for (std::size_t k = 0; k < x.size(); ++k) out.whole(k, x.i[k] == 0, x.known(k));
}

void select(const Call& call) {
  const Value &c = call.x(0), &x = call.x(1), &y = call.x(2);
  Value& z = call.y();
  Writer out(call.arithmetic, z);
  Walk walk(z.shape, {&z.shape, &c.shape, &x.shape, &y.shape});
  walk.each([&](const I* at) {
    const auto k = static_cast<std::size_t>(at[0]), j = static_cast<std::size_t>(at[1]);
    const auto a = static_cast<std::size_t>(at[2]), b = static_cast<std::size_t>(at[3]);
    if (c.i[j] != 0) out.moved(k, x, a);
    else out.moved(k, y, b);
    const bool alike = z.is_real() ? x.f[a] == y.f[b] && x.known(a) && y.known(b) : x.i[a] == y.i[b];
    if (!c.known(j) && !alike) z.error[k] = kUnknown;
  });
}

}  // namespace

Rules pointwise_rules() {
  return {
      {"identity", both([](double x) { return x; }, [](I x) { return x; })},
      {"negative", both([](double x) { return -x; }, negated)},
      {"abs", both([](double x) { return std::fabs(x); }, [](I x) { return x < 0 ? negated(x) : x; })},
      {"square", both([](double x) { return x * x; }, [](I x) { return multiplied(x, x); })},
      {"sqrt", real([](double x) { return std::sqrt(x); }, Kind::kRounded)},
      {"exp", real([](double x) { return std::exp(x); }, Kind::kFunction)},
      {"expm1", real([](double x) { return std::expm1(x); }, Kind::kFunction)},
      {"log", real([](double x) { return std::log(x); }, Kind::kFunction)},
      {"log1p", real([](double x) { return std::log1p(x); }, Kind::kFunction)},
      {"asinh", real([](double x) { return std::asinh(x); }, Kind::kFunction)},
      {"tanh", real([](double x) { return std::tanh(x); }, Kind::kFunction)},
      {"erf", real([](double x) { return std::erf(x); }, Kind::kFunction)},
      {"sigmoid", real(sigmoid, Kind::kFunction)},
      {"softplus", real(softplus, Kind::kFunction)},
      {"gelu", gentle(gelu)},
      {"gelu_slope", gentle(gelu_slope)},
      {"relu", real([](double x) { return larger(x, 0); }, Kind::kRounded)},
      {"elu", real(elu, Kind::kFunction)},
      {"selu", real(selu, Kind::kFunction)},
      {"sin", wave([](double x) { return std::sin(x); })},
      {"cos", wave([](double x) { return std::cos(x); })},
      {"reciprocal", [](const Call& call) { reciprocal(call, [](double x) { return x; }); }},
      {"rsqrt", [](const Call& call) { reciprocal(call, [](double x) { return std::sqrt(x); }); }},
      {"floor", floors},
      {"sign", signs},
      {"cast", casts},
      {"logical_not", logical_not},
      {"add", arithmetic([](double x, double y) { return x + y; }, both_errors, added)},
      {"subtract", arithmetic([](double x, double y) { return x - y; }, both_errors, subtracted)},
      {"multiply", arithmetic([](double x, double y) { return x * y; }, product_error, multiplied)},
      {"divide", arithmetic([](double x, double y) { return x / y; }, quotient_error, nullptr)},
      {"pow", powers},
      {"minimum", arithmetic(smaller, larger_error, [](I x, I y) { return std::min(x, y); })},
      {"maximum", arithmetic(larger, larger_error, [](I x, I y) { return std::max(x, y); })},
      {"floordiv", floordivs},
      {"mod", mods},
      {"less", comparison([](auto x, auto y) { return x < y; })},
      {"less_equal", comparison([](auto x, auto y) { return x <= y; })},
      {"greater", comparison([](auto x, auto y) { return x > y; })},
      {"greater_equal", comparison([](auto x, auto y) { return x >= y; })},
      {"equal", comparison([](auto x, auto y) { return x == y; })},
      {"not_equal", comparison([](auto x, auto y) { return x != y; })},
      {"logical_and", logical(true)},
      {"logical_or", logical(false)},
      {"select", select},
  };
}

}  // namespace weft::judge
