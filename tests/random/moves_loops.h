// Moves: loops, microbatches, recomputation and reversible blocks.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

inline int pick_inside(Generator& gen, int x) {
  return gen.pick([&](int v) {
    return gen.dtype(v) == gen.dtype(x) && gen.meets(gen.shape(x), gen.shape(v)) &&
           gen.shape(v).minus(gen.shape(x)).empty();
  });
}

inline bool loops(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const std::int64_t trips = gen.rng.between(1, 4);
  switch (gen.rng.below(3)) {
    case 0: {
      const int y = pick_inside(gen, x);
      if (y < 0) return false;
      gen.add("looped", {Ref{x}, Ref{y}, trips}, {gen.info(y).low - 0.5, gen.info(y).high + 0.5, false});
      return true;
    }
    case 1: {
      const Shape dims = gen.some_dims(x);
      const double most = static_cast<double>(trips * dims.elements());
      gen.add("loop_sum", {Ref{x}, dims, trips}, {-most, most, false});
      return true;
    }
    default:
      gen.add("loop_kept", {Ref{x}, trips},
              {-gen.bound(x) * std::max(gen.bound(x), 1.0), gen.bound(x) * std::max(gen.bound(x), 1.0), false});
      return true;
  }
}

inline bool recomputations(Generator& gen) {
  const int x = gen.pick_float();
  if (x < 0) return false;
  if (gen.rng.chance(0.3)) {
    gen.add("reversed", {Ref{x}}, {-2 - gen.bound(x), 2 + gen.bound(x), false});
    return true;
  }
  const int y = gen.pick_partner(x);
  if (y < 0) return false;
  gen.add("recomputed", {Ref{x}, Ref{y}}, {-1, 1, false});
  return true;
}

inline bool microbatches(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const std::int64_t parts = dim.size % 3 == 0 && gen.rng.chance(0.3) ? 3 : 2;
  if (dim.size % parts != 0) return false;
  const double most = gen.bound(x) * gen.bound(x);
  if (gen.rng.chance(0.4)) gen.add("microbatch_whole", {Ref{x}, dim, parts}, {-1, 1, false});
  else gen.add("microbatched", {Ref{x}, dim, parts}, {0, most, false});
  return true;
}

inline const Moves kLoopMoves = {
    {"loops", loops, 5}, {"recomputations", recomputations, 4}, {"microbatches", microbatches, 2}};

}  // namespace weft::random_graphs
