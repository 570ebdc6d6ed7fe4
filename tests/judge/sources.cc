// Values from nothing: constants, tables, iota, random numbers, and what variables start from.
//
// Random numbers are Philox4x32-10 (Salmon et al., SC 2011), written here again. The key is a hash of the op's full name, its ordinal
// and the seed; element i of the row-major order takes word i mod 4 of the counter (i / 4, step, iteration), and of
// the word its upper 24 bits.
#include <algorithm>
#include <array>

#include "judge/sources.h"
#include "weft/error.h"

namespace weft::judge {

namespace {

using Words = std::array<std::uint32_t, 4>;

Words philox(Words c, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key), high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0], b = std::uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ low, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return c;
}

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

std::uint64_t key_of(const std::string& name, int ordinal, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return mixed(mixed(hash ^ mixed(static_cast<std::uint64_t>(ordinal))) ^ mixed(seed));
}

double normal_below(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Where the normal distribution reaches p: bisected, then a few steps of Newton.
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  double low = -10, high = 0;
  for (int i = 0; i < 20; ++i) {
    const double middle = (low + high) / 2;
    (normal_below(middle) < p ? low : high) = middle;
  }
  double x = (low + high) / 2;
  for (int i = 0; i < 4; ++i)
    x -= (normal_below(x) - p) / (std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846));
  return x;
}

// One draw from 24 bits.
double drawn(const std::string& distribution, double bits, double a, double b) {
  if (distribution == "random_uniform") return a + (b - a) * (bits * 0x1p-24);
  if (distribution == "random_bernoulli") return bits < std::nearbyint(a * 0x1p24) ? 1 : 0;
  if (distribution == "random_normal") return a + b * normal_quantile((bits + 0.5) * 0x1p-24);
  const double low = normal_below(-2), high = normal_below(2);
  return a + b * normal_quantile(low + (high - low) * ((bits + 0.5) * 0x1p-24));
}

// Floats in [a, b) stay below b when they are rounded.
double below(double v, double b, const Arithmetic& arithmetic, DType dtype) {
  const double r = arithmetic.rounded(v, dtype), most = arithmetic.rounded(b, dtype);
  if (r < b) return r;
  if (most < b) return most;
  int exponent = 0;
  const bool power = std::frexp(most, &exponent) == 0.5;  // numbers lie closer below a power of two
  if (most == 0) return -arithmetic.least(dtype) * 2 * arithmetic.unit(dtype);
  return most - std::ldexp(arithmetic.unit(dtype), power ? exponent - 1 : exponent);
}

void fill_drawn(Value& y, const std::string& distribution, double a, double b, std::uint64_t key, std::uint32_t step,
                std::uint32_t iteration, const Arithmetic& arithmetic) {
  Writer out(arithmetic, y);
  const bool certain = distribution == "random_uniform" || distribution == "random_bernoulli";
  for (std::size_t k = 0; k < y.size(); ++k) {
    const std::uint64_t block = k / 4;
    const Words words =
        philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, iteration}, key);
    const double v = drawn(distribution, words[k % 4] >> 8, a, b);
    if (!y.is_real()) out.whole(k, static_cast<std::int64_t>(v), true);
    else if (!certain) out.function(k, v, 8 * out.unit() * (std::fabs(a) + std::fabs(b) * 8));
    else if (distribution == "random_uniform" && a < b) out.exactly(k, below(v, b, arithmetic, y.dtype), 0);
    else out.exactly(k, arithmetic.rounded(v, y.dtype), 0);
  }
}

void random(const Call& call) {
  const auto iteration = static_cast<std::uint32_t>(call.in.empty() ? 0 : call.x().i[0]);
  fill_drawn(call.y(), call.node.op->name, call.attr<double>("a"), call.attr<double>("b"),
             key_of(call.node.full_name, call.node.ordinal, call.seed), call.step, iteration, call.arithmetic);
}

void constant(const Call& call) {
  Value& y = call.y();
  const auto& value = call.attr<Number>("value");
  Writer out(call.arithmetic, y);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (y.is_real()) out.exactly(k, call.arithmetic.rounded(value.real(), y.dtype), 0);
    else out.whole(k, value.whole(), true);
}

void table(const Call& call) {
  call.y() = value_of(*call.attr<std::shared_ptr<const Array>>("values"), call.y().dtype, call.arithmetic);
}

void iota(const Call& call) {
  Value& y = call.y();
  Writer out(call.arithmetic, y);
  for (std::size_t k = 0; k < y.size(); ++k)
    if (y.is_real()) out.exactly(k, call.arithmetic.rounded(static_cast<double>(k), y.dtype), 0);
    else out.whole(k, static_cast<std::int64_t>(k), true);
}

}  // namespace

Value initial(const Node& variable, const Arithmetic& arithmetic, std::uint64_t seed) {
  const auto& init = variable.attrs.get<Init>("init");
  const TensorType& type = variable.outputs[0];
  if (!init.parts.empty()) throw InternalError("the judge knows no stacked initializers");
  if (init.kind == Init::Kind::kValues) return value_of(init.values->transposed(type.shape), type.dtype, arithmetic);
  Value value(type.shape, type.dtype);
  if (init.kind == Init::Kind::kConstant) {
    Writer out(arithmetic, value);
    for (std::size_t k = 0; k < value.size(); ++k)
      if (value.is_real()) out.exactly(k, arithmetic.rounded(init.a.real(), type.dtype), 0);
      else out.whole(k, init.a.whole(), true);
    return value;
  }
  const std::string name = init.kind == Init::Kind::kUniform  ? "random_uniform"
                           : init.kind == Init::Kind::kNormal ? "random_normal"
                                                              : "random_truncated_normal";
  fill_drawn(value, name, init.a.real(), init.b, key_of(variable.attrs.get<std::string>("name"), 0, seed), 0, 0,
             arithmetic);
  return value;
}

Rules source_rules() {
  return {{"constant", constant},      {"table", table},          {"iota", iota},
          {"random_uniform", random},  {"random_normal", random}, {"random_truncated_normal", random},
          {"random_bernoulli", random}};
}

}  // namespace weft::judge
