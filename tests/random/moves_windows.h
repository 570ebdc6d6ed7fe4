// Moves: convolutions and pools.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

// Steps and paddings that leave at least one place.
inline Window any_window(Generator& gen, const Dim& dim, const Dim& taps) {
  const std::int64_t stride = gen.rng.pick(std::vector<int>{1, 1, 1, 2, 2, 3}),
                     dilation = gen.rng.pick(std::vector<int>{1, 1, 2});
  if (gen.rng.chance(0.6)) return window(dim, taps, Padding::kSame, stride, dilation);
  const std::int64_t reach = (taps.size - 1) * dilation + 1;
  Window w{.dim = dim, .filter = taps, .stride = stride, .dilation = dilation, .before = gen.rng.between(-1, 3)};
  w.after = std::max<std::int64_t>(gen.rng.between(-1, 5), reach - dim.size - w.before);
  return w;
}

inline std::int64_t places_along(const Window& w) {
  return (w.dim.size + w.before + w.after - (w.filter.size - 1) * w.dilation - 1) / w.stride + 1;
}

inline std::vector<Arg> with_window(std::vector<Arg> operands, const Window& w) {
  for (Arg arg : {Arg(w.dim), Arg(w.filter), Arg(w.stride), Arg(w.dilation), Arg(w.before), Arg(w.after)})
    operands.push_back(std::move(arg));
  return operands;
}

inline bool convolutions(Generator& gen) {
  const int x = gen.pick_float(1), filter = gen.pick_float(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x), taps = gen.any_dim(filter);
  const Shape rest = gen.shape(x).minus({dim}), own = gen.shape(filter).minus({taps});
  if (own.has(dim.name) || rest.has(taps.name) || dim.name == taps.name || !gen.meets(rest, own)) return false;
  const Window w = any_window(gen, dim, taps);
  std::vector<Dim> kept;
  Shape summed;
  for (const Dim& d : rest)
    if (own.has(d) && gen.rng.chance(0.3)) kept.push_back(d);
    else if (own.has(d)) summed = summed.plus({d});
  const std::int64_t products = rest.plus(own).elements() * places_along(w) * taps.size;
  const Shape out = rest.plus(own).minus(summed);
  if (products > kMostWork || out.elements() * places_along(w) > kMostElements || out.rank() >= kMostRank) return false;
  const double many = static_cast<double>(taps.size * summed.elements());
  const double bound = std::max(gen.bound(x), 0.1) * std::max(gen.bound(filter), 0.1) * many;
  if (bound > 1e6) return false;
  std::vector<Arg> args = with_window({Ref{x}, Ref{filter}}, w);
  args.emplace_back(Shape(kept));
  gen.add("convolution", std::move(args), {-bound, bound, false});
  return true;
}

inline bool pools(Generator& gen) {
  const int x = gen.pick_float(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  Window w = window(dim, gen.rng.between(1, 4), gen.rng.chance(0.6) ? Padding::kSame : Padding::kValid,
                    gen.rng.pick(std::vector<int>{1, 2, 2, 3}));
  if (places_along(w) < 1 || w.filter.size > dim.size) return false;
  const double many = static_cast<double>(w.filter.size);
  Info info = gen.info(x);
  const std::string name = gen.rng.pick({"max_pool", "min_pool", "sum_pool", "avg_pool"});
  if (name == "sum_pool") info = {std::min(info.low * many, info.low), std::max(info.high * many, info.high), false};
  if (name == "avg_pool") info.exact = false;
  gen.add(name, with_window({Ref{x}}, w), info);
  return true;
}

inline const Moves kWindowMoves = {{"convolutions", convolutions, 5}, {"pools", pools, 3}};

}  // namespace weft::random_graphs
