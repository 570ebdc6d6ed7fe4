// Moves: contractions, reductions and what is made of them.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

inline double elements_of(const Shape& dims) { return static_cast<double>(dims.elements()); }

// Sums of whole numbers are exact in any order.
inline Info summed(const Generator& gen, int x, double many) {
  const Info in = gen.info(x);
  const Info sum{std::min(in.low * many, in.low), std::max(in.high * many, in.high), !gen.floats(x)};
  return Generator::wrapped(gen.dtype(x), sum);
}

inline bool contraction(Generator& gen) {
  const int x = gen.pick([&](int v) { return gen.floats(v) || gen.wholes(v); });
  if (x < 0) return false;
  Refs factors{{x}};
  Shape all = gen.shape(x);
  double bound = std::max(gen.bound(x), 0.1);
  const int more = gen.rng.pick(std::vector<int>{0, 1, 1, 1, 1, 2, 2, 3});
  for (int i = 0; i < more; ++i) {
    const int y =
        gen.pick([&](int v) { return gen.dtype(v) == gen.dtype(x) && gen.meets(all, gen.shape(v), kMostWork); });
    if (y < 0) return false;
    factors.push_back({y});
    all = all.plus(gen.shape(y));
    bound *= std::max(gen.bound(y), 0.1);
  }
  bound *= elements_of(all);
  if (bound > 1e6) return false;
  const Info info = Generator::wrapped(gen.dtype(x), {-bound, bound, !gen.floats(x)});
  std::vector<Dim> kept;
  for (const Dim& dim : gen.shuffled(all))
    if (kept.size() < kMostRank - 1 && Shape(kept).elements() * dim.size <= kMostElements / 4 && gen.rng.chance(0.55))
      kept.push_back(dim);
  const int kind = gen.rng.below(6);
  Shape by_name, repeated;
  for (const Ref& factor : factors)
    for (const Dim& dim : gen.shape(factor.step)) {
      if (by_name.has(dim.name)) repeated = repeated.plus({dim});
      by_name = by_name.plus({dim});
    }
  const Shape left = all.minus(repeated), over = all.minus(Shape(kept));
  if (kind == 0 && left.elements() <= kMostElements && left.rank() <= kMostRank)
    gen.add("einsum_names", {factors}, info);
  else if (kind == 1) gen.add("einsum_over", {factors, over}, info);
  else {
    if (kind == 2)
      kept.insert(kept.begin() + gen.rng.below(static_cast<int>(kept.size()) + 1),
                  gen.pool_dim_outside(all.plus(kept)));  // copies
    gen.add("einsum", {factors, Shape(kept)}, info);
  }
  return true;
}

inline bool sums(Generator& gen) {
  const int x = gen.pick([&](int v) { return (gen.floats(v) || gen.wholes(v)) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  const Shape dims = gen.some_dims(x);
  const double all = elements_of(gen.shape(x)), some = elements_of(dims);
  Info mean = gen.info(x);
  mean.exact = false;
  switch (gen.rng.below(gen.floats(x) ? 6 : 4)) {
    case 0: gen.add("reduce_sum", {Ref{x}}, summed(gen, x, all)); break;
    case 1: gen.add("reduce_sum_to", {Ref{x}, gen.shuffled(gen.shape(x).minus(dims))}, summed(gen, x, some)); break;
    case 2:
    case 3: gen.add("reduce_sum_dims", {Ref{x}, dims}, summed(gen, x, some)); break;
    case 4: gen.add("mean", {Ref{x}}, mean); break;
    default: gen.add("mean_dims", {Ref{x}, dims}, mean);
  }
  return true;
}

inline bool extrema(Generator& gen) {
  const bool truth = gen.rng.chance(0.4);
  const int x = gen.pick([&](int v) { return gen.truths(v) == truth && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  const std::string name =
      truth ? gen.rng.pick({"reduce_any", "reduce_all"}) : gen.rng.pick({"reduce_max", "reduce_min"});
  if (gen.rng.chance(0.4)) gen.add(name, {Ref{x}}, gen.info(x));
  else gen.add(name + "_dims", {Ref{x}, gen.some_dims(x)}, gen.info(x));
  return true;
}

inline bool product(Generator& gen) {
  int x = gen.pick_float(1);
  if (x < 0) return false;
  x = gen.unit(x);
  const Shape dims = gen.rng.chance(0.2) ? gen.shape(x) : Shape{gen.any_dim(x)};
  const double most = std::pow(std::max(gen.bound(x), 1.0), elements_of(dims));
  if (most > 1000) return false;
  if (dims == gen.shape(x)) gen.add("reduce_product", {Ref{x}}, {-most, most, false});
  else gen.add("reduce_product_dims", {Ref{x}, dims}, {-most, most, false});
  return true;
}

// logsumexp, softmax and log_softmax, some with one more class.
inline bool exponentials(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const std::string name = gen.rng.pick({"reduce_logsumexp", "softmax", "softmax", "log_softmax"});
  const double bound = gen.bound(x) + 4;
  const Info info =
      name == "softmax" ? Info{0, 1, false} : Info{name == "log_softmax" ? -2 * bound : -bound, bound, false};
  const int extra = gen.pick([&](int v) {
    return gen.floats(v) && !gen.shape(v).has(dim.name) && gen.meets(gen.shape(x).minus({dim}), gen.shape(v)) &&
           gen.meets(gen.shape(x), gen.shape(v));
  });
  const int kind = name == "log_softmax" ? 0 : gen.rng.below(4);
  if (kind == 1) gen.add(name + "_number", {Ref{x}, dim, 0.5}, info);
  else if (kind == 2 && extra >= 0 && gen.bound(extra) < 8)
    gen.add(name + "_extra", {Ref{x}, dim, Ref{extra}}, Info{info.low - 8, info.high + 8, false});
  else gen.add(name, {Ref{x}, dim}, info);
  return true;
}

inline bool classes(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const Shape rest = gen.shape(x).minus({dim});
  const double z_loss = gen.rng.chance(0.3) ? 0.01 : 0, bound = gen.bound(x) + 4;
  int targets = gen.pick([&](int v) {
    return gen.wholes(v) && gen.dtype(v) != DType::kU8 && !gen.shape(v).has(dim.name) &&
           rest.plus(gen.shape(v)).elements() <= kMostElements && gen.meets(gen.shape(x), gen.shape(v));
  });
  double most = 2 * bound + z_loss * bound * bound;
  if (targets < 0 || gen.rng.chance(0.4)) {  // probabilities: any numbers will do
    targets = gen.pick([&](int v) {
      return gen.floats(v) && gen.shape(v).has(dim) && gen.shape(v).minus(gen.shape(x)).empty() &&
             gen.meets(gen.shape(x), gen.shape(v));
    });
    if (targets < 0) return false;
    most *= static_cast<double>(dim.size) * std::max(1.0, gen.bound(targets));
  }
  gen.add("cross_entropy", {Ref{x}, Ref{targets}, dim, z_loss}, {-most, most, false});
  return true;
}

inline bool running_sum(Generator& gen) {
  const int x = gen.pick([&](int v) { return (gen.floats(v) || gen.wholes(v)) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  Info info = summed(gen, x, static_cast<double>(dim.size));
  info.low = std::min(info.low, 0.0);
  info.high = std::max(info.high, 0.0);
  gen.add("cumsum", {Ref{x}, dim, gen.rng.chance(0.5), gen.rng.chance(0.5)}, info);
  return true;
}

inline bool running_maximum(Generator& gen) {
  const int x = gen.pick([&](int v) { return (gen.floats(v) || gen.wholes(v)) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  gen.add("cummax", {Ref{x}, gen.any_dim(x), gen.rng.chance(0.5)}, gen.info(x));
  return true;
}

inline bool truths_or_not(Generator& gen) {
  const int x = gen.pick_float();
  const int targets = x < 0 ? -1 : gen.pick_partner(x);
  if (targets < 0) return false;
  const double a = gen.bound(x), b = a * gen.bound(targets);
  gen.add("sigmoid_cross_entropy", {Ref{x}, Ref{targets}},
          {-b, 0.7 + a + b, gen.info(x).exact && gen.info(targets).exact});
  return true;
}

// The places along a dim of x look at those along a dim of y; x may have dims that y lacks, and a bias may lack dims.
inline bool attention(Generator& gen) {
  const int x = gen.pick_float(2);
  if (x < 0 || gen.bound(x) > 4) return false;
  const Dim key = gen.any_dim(x), length = gen.any_dim(x);
  if (key == length) return false;
  const Shape rest = gen.shape(x).minus({length});
  const auto fits = [&](int v) {
    if (!gen.floats(v) || gen.dtype(v) != gen.dtype(x) || gen.bound(v) > 4 || !gen.shape(v).has(key)) return false;
    const Shape own = gen.shape(v).minus(rest);
    return own.rank() == 1 && gen.meets(rest, gen.shape(v)) && gen.shape(x).elements() * own.elements() <= kMostWork;
  };
  const int y = gen.pick(fits);
  if (y < 0) return false;
  const Dim seen = gen.shape(y).minus(rest)[0];
  const Shape scores = gen.shape(x).minus({key}).plus({seen});
  const auto shifts = [&](int v) {
    return gen.floats(v) && gen.dtype(v) == gen.dtype(x) && gen.bound(v) <= 4 && gen.shape(v).has(seen) &&
           gen.shape(v).minus(scores).empty() && gen.meets(scores, gen.shape(v));
  };
  const int bias = seen.name == length.name || gen.rng.chance(0.4) ? -1 : gen.pick(shifts);
  std::vector<Arg> args{Ref{x}, Ref{y}, key, seen, seen.size, key.size, gen.rng.chance(0.6), length.name, key.name};
  if (bias >= 0) args.push_back(Ref{bias});
  gen.add(bias >= 0 ? "attend_biased" : "attend", std::move(args), {-gen.bound(y), gen.bound(y), false});
  return true;
}

inline const Moves kReduceMoves = {
    {"truths_or_not", truths_or_not, 1},
    {"contraction", contraction, 10},
    {"sums", sums, 5},
    {"extrema", extrema, 5},
    {"product", product, 1},
    {"exponentials", exponentials, 3},
    {"classes", classes, 2},
    {"attention", attention, 3},
    {"running_sum", running_sum, 3},
    {"running_maximum", running_maximum, 2},
};

}  // namespace weft::random_graphs
