// Moves: whole numbers of every dtype that wrap. Reductions meet arithmetic that they may not move past.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

inline Info whole_range(DType dtype) {
  switch (dtype) {
    case DType::kBool: return {0, 1};
    case DType::kU8: return {0, 255};
    case DType::kI8: return {-128, 127};
    case DType::kU32: return {0, 4294967295.0};
    case DType::kI32: return {-2147483648.0, 2147483647.0};
    default: return {-0x1p53, 0x1p53};
  }
}

inline int pick_whole(Generator& gen, std::size_t rank = 0) {
  return gen.pick([&](int v) { return is_integer(gen.dtype(v)) && gen.shape(v).rank() >= rank; });
}

// A number that the dtype holds, now and then one at the end of its range.
inline double whole_number(Generator& gen, DType dtype) {
  const Info range = whole_range(dtype);
  if (gen.rng.chance(0.2)) return dtype == DType::kI64 ? 9007199254740991.0 : range.high;
  return gen.rng.between(range.low < 0 ? -9 : 1, dtype == DType::kU8 ? 200 : 99);
}

inline bool wrapping(Generator& gen) {
  const int x = pick_whole(gen);
  if (x < 0) return false;
  const Info info = whole_range(gen.dtype(x));
  if (gen.rng.chance(0.4)) {
    const int y = gen.pick_partner(x);
    gen.add(gen.rng.pick({"add", "subtract", "multiply", "minimum", "maximum", "floordiv", "mod"}), {Ref{x}, Ref{y}},
            info);
    return true;
  }
  const double number = whole_number(gen, gen.dtype(x));
  switch (gen.rng.below(6)) {
    case 0: gen.add("add_number", {Ref{x}, number}, info); break;
    case 1: gen.add("scale", {Ref{x}, number}, info); break;
    case 2: gen.add("number_minus", {number, Ref{x}}, info); break;
    case 3: gen.add("maximum_number", {Ref{x}, number}, info); break;
    case 4: gen.add("floordiv_number", {Ref{x}, number}, info); break;
    default: gen.add("mod_number", {Ref{x}, number}, info);
  }
  return true;
}

// A reduction that is pending under some layouts, arithmetic that wraps, and the same reduction of the rest: the way on which
// it pays to keep it pending. Now and then the two reductions differ.
inline bool pending(Generator& gen) {
  int x = pick_whole(gen, 2);
  if (x < 0) return false;
  const DType dtype = gen.dtype(x);
  const Info info = whole_range(dtype);
  const std::string how =
      gen.rng.pick({"reduce_max", "reduce_max", "reduce_min", "reduce_min", "reduce_sum", "reduce_product"});
  x = gen.add(how + "_dims", {Ref{x}, Shape{gen.any_dim(x)}}, info);
  for (int i = gen.rng.between(1, 2); i > 0; --i) {
    const double number = whole_number(gen, dtype);
    const std::string between = gen.rng.pick(
        {"add_number", "add_number", "scale", "scale", "number_minus", "maximum_number", "mod_number", "cast"});
    if (between == "number_minus") x = gen.add(between, {number, Ref{x}}, info);
    else if (between == "cast" && dtype != DType::kI64)  // to a dtype in which it wraps, and back
      x = gen.add("cast", {Ref{gen.add("cast", {Ref{x}, dtype == DType::kU8 ? DType::kI32 : DType::kU8}, info)}, dtype},
                  info);
    else if (between != "cast") x = gen.add(between, {Ref{x}, number}, info);
  }
  if (gen.shape(x).rank() == 0) return true;
  const std::string last = gen.rng.chance(0.8) ? how : gen.rng.pick({"reduce_max", "reduce_min", "reduce_sum"});
  if (gen.rng.chance(0.5)) gen.add(last, {Ref{x}}, info);
  else gen.add(last + "_dims", {Ref{x}, gen.some_dims(x)}, info);
  return true;
}

inline bool whole_reductions(Generator& gen) {
  const int x = pick_whole(gen, 1);
  if (x < 0) return false;
  const Info info = whole_range(gen.dtype(x));
  switch (gen.rng.below(5)) {
    case 0: gen.add("cumsum", {Ref{x}, gen.any_dim(x), gen.rng.chance(0.5), gen.rng.chance(0.5)}, info); break;
    case 1:
      gen.add(gen.rng.pick({"reduce_max_dims", "reduce_min_dims", "reduce_sum_dims", "reduce_product_dims"}),
              {Ref{x}, gen.some_dims(x)}, info);
      break;
    case 2: {
      const int y = gen.pick_partner(x, kMostWork);
      gen.add("einsum", {Refs{{x}, {y}}, Shape{gen.any_dim(x)}}, info);
      break;
    }
    case 3: gen.add(gen.rng.pick({"argmax", "argmin"}), {Ref{x}, gen.any_dim(x)}, {0, 24}); break;
    default: gen.add("sort_values", {Ref{x}, gen.any_dim(x), gen.rng.chance(0.5)}, info);
  }
  return true;
}

inline bool whole_casts(Generator& gen) {
  const int x = gen.pick([&](int v) { return is_integer(gen.dtype(v)) || gen.truths(v); });
  if (x < 0) return false;
  const DType to = gen.rng.pick(std::vector<DType>{DType::kI32, DType::kI64, DType::kU32, DType::kU8, DType::kBool});
  if (to == gen.dtype(x)) return false;
  gen.add("cast", {Ref{x}, to}, whole_range(to));
  return true;
}

inline bool whole_truths(Generator& gen) {
  const int x = pick_whole(gen);
  const int y = x < 0 ? -1 : gen.pick_partner(x);
  if (y < 0) return false;
  const int truth = gen.add(gen.rng.pick({"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}),
                            {Ref{x}, Ref{y}}, {0, 1});
  if (gen.rng.chance(0.6)) gen.add("select", {Ref{truth}, Ref{x}, Ref{y}}, whole_range(gen.dtype(x)));
  return true;
}

// Indices in a small range, from numbers in any.
inline bool small_indices(Generator& gen) {
  const int x = gen.pick([&](int v) { return is_integer(gen.dtype(v)) && gen.bound(v) > 1e5; });
  if (x < 0) return false;
  gen.add("mod_number", {Ref{x}, static_cast<double>(gen.rng.between(5, 14))}, {0, 13});
  return true;
}

inline const Moves kWholeMoves = {{"wrapping", wrapping, 12, false},
                                  {"pending", pending, 20, false},
                                  {"whole_reductions", whole_reductions, 8, false},
                                  {"whole_casts", whole_casts, 4, false},
                                  {"whole_truths", whole_truths, 3, false},
                                  {"small_indices", small_indices, 3, false}};

}  // namespace weft::random_graphs
