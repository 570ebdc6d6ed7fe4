// Moves: loops whose carried values change places, and regions that return outside tensors.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

// A tensor of the same dims in the same order as x, of x's dtype.
inline int pick_same(Generator& gen, int x) {
  return gen.pick([&](int v) { return gen.dtype(v) == gen.dtype(x) && gen.shape(v) == gen.shape(x); });
}

// The range of a sum of `many` numbers from either tensor.
inline Info many_of(const Generator& gen, int x, int y, double many) {
  const double most = many * std::max(gen.bound(x), gen.bound(y));
  return Generator::wrapped(gen.dtype(x), {-most, most, !gen.floats(x)});
}

inline bool places_change(Generator& gen) {
  const int x = gen.pick([&](int v) { return gen.floats(v) || is_integer(gen.dtype(v)); });
  if (x < 0) return false;
  const int y = gen.rng.chance(0.7) ? pick_same(gen, x) : gen.pick_alike(x), z = pick_same(gen, x);
  const std::int64_t trips = gen.rng.between(1, 4);
  const std::string name = gen.rng.pick(
      {"loop_swap", "loop_rotate", "loop_doubled", "loop_chain", "loop_outside", "loop_nested", "loop_stopped"});
  const Info info = many_of(gen, x, y, 3000);
  if (name == "loop_rotate") gen.add(name, {Ref{x}, Ref{y}, Ref{z}, trips}, info);
  else if (name == "loop_nested") gen.add(name, {Ref{x}, Ref{y}, trips, std::int64_t{gen.rng.between(1, 3)}}, info);
  else if (name == "loop_stopped")
    gen.add(name, {Ref{x}, Ref{y}, trips, static_cast<double>(gen.rng.between(0, 3))}, info);
  else gen.add(name, {Ref{x}, Ref{y}, trips}, info);
  return true;
}

// What is made of small numbers stays small.
inline bool smooth_loops(Generator& gen) {
  int x = gen.pick_float();
  if (x < 0) return false;
  x = gen.unit(x);
  int y = gen.pick_alike(x);
  if (gen.bound(y) > 1.2) y = gen.unit(y);
  const std::int64_t trips = gen.rng.between(1, 4);
  switch (gen.rng.below(4)) {
    case 0: gen.add("loop_waves", {Ref{x}, Ref{y}, trips}, {-30, 30, false}); break;
    case 1: gen.add("loop_squares", {Ref{x}, trips}, {-2, 2, false}); break;
    case 2: gen.add("loop_of_loops", {Ref{x}, Ref{y}, std::min<std::int64_t>(trips, 2)}, {-30, 30, false}); break;
    default: gen.add("loop_noise", {Ref{x}, trips}, {-2, 2, false});
  }
  return true;
}

inline bool regions(Generator& gen) {
  int x = gen.pick_float();
  if (x < 0) return false;
  x = gen.small(x);
  int y = gen.pick_alike(x);
  y = gen.small(y);
  const std::int64_t trips = gen.rng.between(1, 3);
  const std::string name =
      gen.rng.pick({"recompute_outside", "recompute_only_outside", "recompute_twice", "recompute_in_loop",
                    "loop_in_recompute", "reversible_outside", "reversible_input", "custom_true"});
  const Info info{-30, 30, false};
  if (name == "recompute_only_outside") gen.add(name, {Ref{x}}, gen.info(x));
  else if (name.find("loop") != std::string::npos) gen.add(name, {Ref{x}, Ref{y}, trips}, info);
  else gen.add(name, {Ref{x}, Ref{y}}, info);
  return true;
}

inline bool parts_of_batches(Generator& gen) {
  int x = gen.pick_float(1);
  if (x < 0) return false;
  x = gen.small(x);
  const Dim dim = gen.any_dim(x);
  const std::int64_t parts = dim.size % 3 == 0 && gen.rng.chance(0.3) ? 3 : 2;
  if (dim.size % parts != 0) return false;
  const int kind = gen.rng.below(3);
  if (kind == 0) {
    gen.add("microbatch_input", {Ref{x}, dim, parts}, gen.info(x));
    return true;
  }
  int y = gen.pick([&](int v) { return gen.floats(v) && !gen.shape(v).has(dim.name); });
  if (y < 0) return false;
  y = gen.small(y);
  gen.add(kind == 1 ? "microbatch_outside" : "microbatch_loss_outside", {Ref{x}, Ref{y}, dim, parts}, {-9, 9, false});
  return true;
}

inline const Moves kCarriedMoves = {{"places_change", places_change, 12}, {"smooth_loops", smooth_loops, 8}};
inline const Moves kRegionMoves = {{"regions", regions, 12}, {"parts_of_batches", parts_of_batches, 5}};

}  // namespace weft::random_graphs
