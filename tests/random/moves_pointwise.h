// Moves: functions of one element, in all dtypes, and values from nothing.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

enum class Need { kAny, kPositive, kSmall, kExact };
struct UnaryMove {
  const char* name;
  Need need;
  Info (*range)(double low, double high);
};

inline double most(double low, double high) { return std::max(std::fabs(low), std::fabs(high)); }

inline const std::vector<UnaryMove> kUnaryMoves = {
    {"identity", Need::kAny,
     [](double l, double h) {
       return Info{l, h};
     }},
    {"stop_gradient", Need::kAny,
     [](double l, double h) {
       return Info{l, h};
     }},
    {"negative", Need::kAny,
     [](double l, double h) {
       return Info{-h, -l};
     }},
    {"minus", Need::kAny,
     [](double l, double h) {
       return Info{-h, -l};
     }},
    {"abs", Need::kAny,
     [](double l, double h) {
       return Info{0, most(l, h)};
     }},
    {"sign", Need::kExact,
     [](double, double) {
       return Info{-1, 1};
     }},
    {"floor", Need::kExact,
     [](double l, double h) {
       return Info{std::floor(l), std::floor(h)};
     }},
    {"square", Need::kAny,
     [](double l, double h) {
       return Info{0, most(l, h) * most(l, h)};
     }},
    {"sqrt", Need::kPositive,
     [](double l, double h) {
       return Info{std::sqrt(l), std::sqrt(h)};
     }},
    {"rsqrt", Need::kPositive,
     [](double l, double h) {
       return Info{1 / std::sqrt(h), 1 / std::sqrt(l)};
     }},
    {"reciprocal", Need::kPositive,
     [](double l, double h) {
       return Info{1 / h, 1 / l};
     }},
    {"exp", Need::kSmall,
     [](double l, double h) {
       return Info{std::exp(l), std::exp(h)};
     }},
    {"expm1", Need::kSmall,
     [](double l, double h) {
       return Info{std::expm1(l), std::expm1(h)};
     }},
    {"log", Need::kPositive,
     [](double l, double h) {
       return Info{std::log(l), std::log(h)};
     }},
    {"log1p", Need::kPositive,
     [](double l, double h) {
       return Info{std::log1p(l), std::log1p(h)};
     }},
    {"sin", Need::kAny,
     [](double, double) {
       return Info{-1, 1};
     }},
    {"cos", Need::kAny,
     [](double, double) {
       return Info{-1, 1};
     }},
    {"asinh", Need::kAny,
     [](double l, double h) {
       return Info{std::asinh(l), std::asinh(h)};
     }},
    {"tanh", Need::kAny,
     [](double, double) {
       return Info{-1, 1};
     }},
    {"erf", Need::kAny,
     [](double, double) {
       return Info{-1, 1};
     }},
    {"sigmoid", Need::kAny,
     [](double, double) {
       return Info{0, 1};
     }},
    {"softplus", Need::kAny,
     [](double l, double h) {
       return Info{std::log1p(std::exp(l)), std::log1p(std::exp(h))};
     }},
    {"relu", Need::kAny,
     [](double, double h) {
       return Info{0, std::max(h, 0.0)};
     }},
    {"elu", Need::kAny,
     [](double, double h) {
       return Info{-1, std::max(h, 0.0)};
     }},
    {"selu", Need::kAny,
     [](double, double h) {
       return Info{-1.8, 1.06 * std::max(h, 0.0)};
     }},
    {"swish", Need::kAny,
     [](double, double h) {
       return Info{-0.3, std::max(h, 0.0)};
     }},
    {"gelu", Need::kAny,
     [](double, double h) {
       return Info{-0.2, std::max(h, 0.0)};
     }},
};

inline bool unary(Generator& gen) {
  const UnaryMove move = gen.rng.pick(kUnaryMoves);
  if (move.need == Need::kExact && gen.recipe.narrow) return false;  // too much lies near a jump
  int x = gen.pick_float();
  if (x < 0) return false;
  if (move.need == Need::kPositive) x = gen.positive(x);
  if (move.need == Need::kSmall) x = gen.small(x);
  if (move.need == Need::kExact) x = gen.exact(x);
  Info info = move.range(gen.info(x).low, gen.info(x).high);
  info.exact = gen.info(x).exact;
  gen.add(move.name, {Ref{x}}, info);
  return true;
}

inline Info both(const Generator& gen, int x, int y, double low, double high) {
  return {low, high, gen.info(x).exact && gen.info(y).exact};
}
inline Info hull(const Generator& gen, int x, int y) {
  return both(gen, x, y, std::min(gen.info(x).low, gen.info(y).low), std::max(gen.info(x).high, gen.info(y).high));
}

// The range of a function that is monotone in each operand: that of its corners.
template <class F>
Info corners(const Generator& gen, int x, int y, const F& f) {
  const Info &a = gen.info(x), &b = gen.info(y);
  const double at[] = {f(a.low, b.low), f(a.low, b.high), f(a.high, b.low), f(a.high, b.high)};
  return both(gen, x, y, *std::min_element(at, at + 4), *std::max_element(at, at + 4));
}

inline bool binary(Generator& gen) {
  int x = gen.pick_float();
  int y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const std::string name =
      gen.rng.pick({"add", "add", "subtract", "multiply", "multiply", "divide", "pow", "minimum", "maximum"});
  if (name == "divide" || name == "pow") {
    if (name == "pow") std::tie(x, y) = std::pair(gen.positive(x), gen.small(y));
    else y = gen.positive(y);
  }
  const auto f = [&](double a, double b) {
    if (name == "add") return a + b;
    if (name == "subtract") return a - b;
    if (name == "multiply") return a * b;
    if (name == "divide") return a / b;
    if (name == "pow") return std::pow(a, b);
    return name == "minimum" ? std::min(a, b) : std::max(a, b);
  };
  gen.add(name, {Ref{x}, Ref{y}}, corners(gen, x, y, f));
  return true;
}

inline bool with_number(Generator& gen) {
  int x = gen.pick_float();
  if (x < 0) return false;
  const double number = gen.rng.between(-12, 12) / 8.0 + 0.0625;
  const Info in = gen.info(x);
  const int kind = gen.rng.below(7);
  if (kind == 0) gen.plus(x, number);
  if (kind == 1) gen.scaled(x, number);
  if (kind == 2) gen.add("number_minus", {number, Ref{x}}, {number - in.high, number - in.low, in.exact});
  if (kind == 3) gen.scaled(gen.add("divide_number", {Ref{x}, 4.0}, {in.low / 4, in.high / 4, in.exact}), 1.5);
  if (kind == 4) {
    x = gen.positive(x);
    gen.add("number_over", {1.5, Ref{x}}, {1.5 / gen.info(x).high, 1.5 / gen.info(x).low, in.exact});
  }
  if (kind == 5)
    gen.add("maximum_number", {Ref{x}, number}, {std::max(in.low, number), std::max(in.high, number), in.exact});
  if (kind == 6) gen.add("leaky_relu", {Ref{x}, 0.25}, {std::min(in.low, 0.0), std::max(in.high, 0.0), in.exact});
  return true;
}

// Division with rest, of exact floats and of whole numbers.
inline bool remainder(Generator& gen) {
  int x = gen.pick([&](int v) { return (gen.floats(v) || gen.wholes(v)) && gen.info(v).exact; });
  if (x < 0) return false;
  const bool rest = gen.rng.chance(0.5);
  const double by = gen.rng.between(2, 5);
  const Info in = gen.info(x);
  const Info info = rest ? Info{0, by} : Info{std::floor(in.low / by), std::floor(in.high / by)};
  int y =
      gen.floats(x)
          ? gen.pick([&](int v) { return gen.floats(v) && gen.info(v).exact && gen.meets(gen.shape(x), gen.shape(v)); })
          : -1;
  if (y < 0 || gen.rng.chance(0.5)) {
    gen.add(rest ? "mod_number" : "floordiv_number", {Ref{x}, by}, info);
    return true;
  }
  y = gen.positive(y);
  const double many = gen.bound(x) / gen.info(y).low + 1;
  gen.add(rest ? "mod" : "floordiv", {Ref{x}, Ref{y}}, rest ? Info{0, gen.info(y).high} : Info{-many, many});
  return true;
}

// Whole numbers: sums, products and the rest.
inline bool whole_binary(Generator& gen) {
  const int x = gen.pick([&](int v) { return gen.wholes(v); });
  const int y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const std::string name = gen.rng.pick({"add", "subtract", "multiply", "minimum", "maximum"});
  const auto f = [&](double a, double b) {
    if (name == "add") return a + b;
    if (name == "subtract") return a - b;
    if (name == "multiply") return a * b;
    return name == "minimum" ? std::min(a, b) : std::max(a, b);
  };
  gen.add(name, {Ref{x}, Ref{y}}, Generator::wrapped(gen.dtype(x), corners(gen, x, y, f)));
  return true;
}

inline bool compare(Generator& gen) {
  int x = gen.pick([&](int v) { return gen.floats(v) || gen.wholes(v); });
  if (x < 0) return false;
  x = gen.exact(x);
  if (gen.rng.chance(0.3)) {
    gen.add(gen.rng.pick({"greater_number", "equal_number"}), {Ref{x}, static_cast<double>(gen.rng.between(0, 2))},
            {0, 1});
    return true;
  }
  int y = gen.pick_partner(x);
  if (y < 0) return false;
  y = gen.exact(y);
  gen.add(gen.rng.pick({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}), {Ref{x}, Ref{y}},
          {0, 1});
  return true;
}

inline bool logic(Generator& gen) {
  const int x = gen.pick([&](int v) { return gen.truths(v); });
  const int y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const int kind = gen.rng.below(3);
  if (kind == 2) gen.add("logical_not", {Ref{x}}, {0, 1});
  else gen.add(kind == 0 ? "logical_and" : "logical_or", {Ref{x}, Ref{y}}, {0, 1});
  return true;
}

inline bool selection(Generator& gen) {
  const int condition = gen.pick([&](int v) { return gen.truths(v); });
  if (condition < 0) return false;
  const int x = gen.pick([&](int v) { return !gen.truths(v) && gen.meets(gen.shape(condition), gen.shape(v)); });
  if (x < 0) return false;
  const Shape seen = gen.shape(condition).plus(gen.shape(x));
  const int y = gen.pick([&](int v) { return gen.dtype(v) == gen.dtype(x) && gen.meets(seen, gen.shape(v)); });
  Info info = gen.info(x);
  info.low = std::min(info.low, 0.0);
  info.high = std::max(info.high, 0.0);
  if (y < 0 || gen.rng.chance(0.3)) gen.add("select_number", {Ref{condition}, Ref{x}, 0.0}, info);
  else gen.add("select", {Ref{condition}, Ref{x}, Ref{y}}, hull(gen, x, y));
  return true;
}

inline bool add_many(Generator& gen) {
  const int x = gen.pick_float();
  if (x < 0) return false;
  Refs terms{{x}};
  Info sum = gen.info(x);
  Shape seen = gen.shape(x);
  for (int i = gen.rng.between(1, 2); i > 0; --i) {
    const int y = gen.pick([&](int v) { return gen.floats(v) && gen.meets(seen, gen.shape(v)); });
    if (y < 0) continue;
    terms.push_back({y});
    seen = seen.plus(gen.shape(y));
    sum = {sum.low + gen.info(y).low, sum.high + gen.info(y).high, sum.exact && gen.info(y).exact};
  }
  gen.add("add_n", {terms}, sum);
  return true;
}

inline bool casts(Generator& gen) {
  const int x = gen.pick_any();
  if (x < 0) return false;
  const Info in = gen.info(x);
  if (gen.floats(x)) {
    const int kind = gen.rng.below(3);
    if (kind == 0) {  // there and back
      const int other =
          gen.add("cast", {Ref{x}, gen.rng.pick(std::vector<DType>{DType::kBF16, DType::kF16, DType::kF64})}, in);
      gen.add("cast", {Ref{other}, DType::kF32}, in);
      return true;
    }
    const int y = gen.exact(x);
    const bool truth = kind == 1;
    gen.add("cast", {Ref{y}, truth ? DType::kBool : DType::kI32},
            truth ? Info{0, 1} : Info{std::trunc(gen.info(y).low), std::trunc(gen.info(y).high)});
    return true;
  }
  if (!gen.truths(x) && !gen.wholes(x)) return false;
  std::vector<DType> to = {DType::kF32, DType::kF32, DType::kI32, DType::kI64, DType::kBool};
  if (in.low >= 0 && in.high < 256) to.insert(to.end(), {DType::kU8, DType::kU32});
  const DType dtype = gen.rng.pick(to);
  gen.add("cast", {Ref{x}, dtype}, dtype == DType::kBool ? Info{0, 1} : in);
  return true;
}

// In f32 for a while: what a product of narrow floats gives may then never have been narrow.
inline bool widened(Generator& gen) {
  int x = gen.pick_float();
  if (x < 0) return false;
  const Info in = gen.info(x);
  x = gen.scaled(gen.add("cast", {Ref{x}, DType::kF32}, in), 0.75);
  gen.add("cast", {Ref{x}, gen.real()}, gen.info(x));
  return true;
}

inline bool by_hand(Generator& gen) {  // derivatives given by hand
  const int x = gen.pick_float();
  const int y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const Info in = gen.info(x);
  if (gen.rng.chance(0.5)) {
    gen.add("custom_square", {Ref{x}}, {0, gen.bound(x) * gen.bound(x), in.exact});
    return true;
  }
  const double many = gen.bound(x) * gen.bound(y) + gen.bound(x) + gen.bound(y);
  gen.add("custom_product", {Ref{x}, Ref{y}, std::int64_t{gen.rng.below(2)}}, both(gen, x, y, -many, many));
  return true;
}

inline bool dropped(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const Info in{std::min(2 * gen.info(x).low, 0.0), std::max(2 * gen.info(x).high, 0.0), gen.info(x).exact};
  if (gen.rng.chance(0.5)) gen.add("dropout", {Ref{x}, 0.5}, in);
  else gen.add("dropout_noise", {Ref{x}, 0.75, gen.some_dims(x)}, in);
  return true;
}

// A value that lies by rules of its own. Axes that a mesh lacks do not matter.
inline bool own_layout(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  std::vector<std::string> axes = {"p", "q", "r"}, rules;
  gen.rng.shuffle(axes);
  for (const Dim& dim : gen.shape(x)) {
    if (gen.rng.chance(0.3)) rules.push_back(dim.name + ":-");
    else if (!axes.empty() && gen.rng.chance(0.6)) {
      rules.push_back(dim.name + ":" + axes.back() + "?");
      axes.pop_back();
      if (axes.empty() || !gen.rng.chance(0.2)) continue;
      rules.back().insert(rules.back().size() - 1, "+" + axes.back());
      axes.pop_back();
    }
  }
  if (rules.empty()) return false;
  std::string text;
  for (const std::string& rule : rules) text += (text.empty() ? "" : " ") + rule;
  gen.add("with_layout", {Ref{x}, text}, gen.info(x));
  return true;
}

inline bool printed(Generator& gen) {
  const int x = gen.pick_any();
  gen.add("print", {Ref{x}, std::string("here")}, gen.info(x));
  return true;
}

// Constants, tables, iota and random numbers.
inline bool source(Generator& gen) {
  const Shape shape = gen.pool_shape(2, 300);
  const int stream = gen.rng.below(1000);
  switch (gen.rng.below(9)) {
    case 0: gen.add("constant", {0.75, shape, gen.real()}, {0.75, 0.75}); break;
    case 1: gen.add("constant", {3.0, gen.rng.chance(0.5) ? Shape{} : shape, DType::kI32}, {3, 3}); break;
    case 2: gen.add("table", {shape, gen.real(), -1.5, 1.5, false, std::int64_t{stream}}, {-1.5, 1.5}); break;
    case 3: gen.add("table", {shape, DType::kI32, -1.0, 7.0, true, std::int64_t{stream}}, {-1, 6}); break;
    case 4: gen.add("iota", {gen.pool_dim(), gen.rng.chance(0.5) ? gen.real() : DType::kI32}, {0, 23}); break;
    case 5: gen.add_real("random_uniform", {shape, -1.0, 2.0}, {-1, 2}); break;
    case 6:
      gen.add_real(gen.rng.pick({"random_normal", "random_truncated_normal"}), {shape, 0.25, 0.5}, {-4, 4});
      break;
    case 7:
      gen.add("random_bernoulli", {shape, 0.4, gen.rng.pick(std::vector<DType>{gen.real(), DType::kBool, DType::kI32})},
              {0, 1});
      break;
    default: {
      const int x = gen.pick_any();
      const bool zeros = gen.rng.chance(0.5);
      gen.add(zeros ? "zeros_like" : "ones_like", {Ref{x}}, {zeros ? 0.0 : 1.0, zeros ? 0.0 : 1.0});
    }
  }
  return true;
}

inline bool noisy(Generator& gen) {
  const int x = gen.pick_float();
  if (x < 0) return false;
  const double most = gen.bound(x);
  switch (gen.rng.below(4)) {
    case 3: {
      const int scalar =
          gen.add("constant", {0.25, Shape{}, DType::kF32}, {0.25, 0.25});  // 1 / sigmoid(0.25) is below 2
      gen.add("dropout_run_time", {Ref{x}, Ref{scalar}}, {-2 * most, 2 * most, gen.info(x).exact});
      break;
    }
    case 0: gen.add_real("random_gumbel", {gen.pool_shape(3)}, {-3.1, 16.8}); break;
    case 1: gen.add("multiplicative_jitter", {Ref{x}, 0.25}, {-1.25 * most, 1.25 * most, gen.info(x).exact}); break;
    default: gen.add("clip_activation_gradient", {Ref{x}, 0.125}, gen.info(x));
  }
  return true;
}

inline const Moves kPointwiseMoves = {
    {"noisy", noisy, 2},         {"unary", unary, 8},     {"binary", binary, 8},   {"with_number", with_number, 3},
    {"remainder", remainder},    {"whole", whole_binary}, {"compare", compare, 3}, {"logic", logic},
    {"selection", selection, 3}, {"add_many", add_many},  {"casts", casts, 3},     {"by_hand", by_hand},
    {"dropped", dropped},        {"printed", printed, 1}, {"source", source, 4},
};

}  // namespace weft::random_graphs
