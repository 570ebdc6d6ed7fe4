// Moves: floats of any size. Nothing is brought into a range; what may come out is any number, an infinity or NaN.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

constexpr Info kAnyNumber{-1e300, 1e300, true};

inline int pick_number(Generator& gen, std::size_t rank = 0) {
  return gen.pick([&](int v) { return gen.floats(v) && gen.shape(v).rank() >= rank; });
}

inline bool extreme_pointwise(Generator& gen) {
  const int x = pick_number(gen);
  if (x < 0) return false;
  if (gen.rng.chance(0.5)) {
    gen.add(gen.rng.pick({"negative", "abs",   "square", "sqrt",  "exp",      "expm1",      "log",
                          "log1p",    "asinh", "tanh",   "erf",   "sigmoid",  "softplus",   "relu",
                          "elu",      "selu",  "sign",   "floor", "identity", "reciprocal", "rsqrt"}),
            {Ref{x}}, kAnyNumber);
    return true;
  }
  const int y = gen.pick_partner(x);
  switch (gen.rng.below(4)) {
    case 0:
      gen.add("scale", {Ref{x}, gen.rng.pick(std::vector<double>{0, 1e30, -1e30, 1e-30, -1, 3})}, kAnyNumber);
      break;
    case 1:
      gen.add("add_number", {Ref{x}, gen.rng.pick(std::vector<double>{0, 1e30, -1e30, 1, -1})}, kAnyNumber);
      break;
    default:
      gen.add(gen.rng.pick({"add", "subtract", "multiply", "divide", "minimum", "maximum"}), {Ref{x}, Ref{y}},
              kAnyNumber);
  }
  return true;
}

inline bool extreme_reductions(Generator& gen) {
  int x = pick_number(gen, 1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  switch (gen.rng.below(6)) {
    case 0:
    case 1: {  // pending past arithmetic
      // along the shortest dim, so that a processor may have nothing but an infinity
      Dim shortest = dim;
      for (const Dim& other : gen.shape(x))
        if (other.size < shortest.size) shortest = other;
      const std::string how = gen.rng.pick({"reduce_max", "reduce_min", "reduce_sum"});
      x = gen.add(how + "_dims", {Ref{x}, Shape{shortest}}, kAnyNumber);
      x = gen.add("scale", {Ref{x}, gen.rng.pick(std::vector<double>{0, 1e30, -1, 0.5})}, kAnyNumber);
      if (gen.shape(x).rank() > 0) gen.add(how + "_dims", {Ref{x}, Shape{gen.any_dim(x)}}, kAnyNumber);
      break;
    }
    case 2: gen.add(gen.rng.pick({"reduce_sum", "mean", "reduce_max", "reduce_min"}), {Ref{x}}, kAnyNumber); break;
    case 3: gen.add("cumsum", {Ref{x}, dim, gen.rng.chance(0.5), gen.rng.chance(0.5)}, kAnyNumber); break;
    case 4:
      gen.add(gen.rng.pick({"sort_values", "sort_indices"}), {Ref{x}, dim, gen.rng.chance(0.5)}, kAnyNumber);
      break;
    default: {
      const int y = gen.pick_partner(x, kMostWork);
      gen.add("einsum", {Refs{{x}, {y}}, Shape{gen.any_dim(x)}}, kAnyNumber);
    }
  }
  return true;
}

inline bool large_logits(Generator& gen) {
  const int x = pick_number(gen, 1);
  if (x < 0) return false;
  gen.add(gen.rng.pick({"softmax", "log_softmax", "reduce_logsumexp"}), {Ref{x}, gen.any_dim(x)}, kAnyNumber);
  return true;
}

// Whole queries and keys, so large that every weight is 0 or 1.
inline bool large_attention(Generator& gen) {
  const Dim length{"a", 12}, memory{"c", 6}, key{"d", 4};
  const double size = gen.rng.pick(std::vector<double>{1, 4, 4096, 20000});
  const auto input = [&](const Shape& shape) {
    const int n = gen.count();
    gen.add("input", {"q" + std::to_string(n), shape, DType::kF32, -4.0, 5.0, true, std::int64_t{n}}, {-4, 4});
    return gen.scaled(n, size);
  };
  const int x = input({length, key}), y = input({memory, key});
  gen.add("attend", {Ref{x}, Ref{y}, key, memory, memory.size, key.size, gen.rng.chance(0.5), length.name, key.name},
          {-5 * size, 5 * size, false});
  return true;
}

inline bool extreme_choices(Generator& gen) {
  const int x = pick_number(gen), y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const int truth = gen.add(gen.rng.pick({"less", "less_equal", "greater", "equal"}), {Ref{x}, Ref{y}}, {0, 1});
  gen.add("select", {Ref{truth}, Ref{x}, Ref{y}}, kAnyNumber);
  return true;
}

inline const Moves kExtremeMoves = {{"extreme_pointwise", extreme_pointwise, 12, false},
                                    {"extreme_reductions", extreme_reductions, 8, false},
                                    {"large_logits", large_logits, 4, false},
                                    {"large_attention", large_attention, 2, false},
                                    {"extreme_choices", extreme_choices, 2, false}};

}  // namespace weft::random_graphs
