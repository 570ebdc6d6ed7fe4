// Moves: indices, and elements that change their place.
#pragma once

#include "generator.h"

namespace weft::random_graphs {

inline Info with_zero(Info info) { return {std::min(info.low, 0.0), std::max(info.high, 0.0), info.exact}; }

// A size for a piece of a dim: most often one that meshes divide.
inline std::int64_t piece_size(Generator& gen, std::int64_t size) {
  if (size % 2 == 0 && gen.rng.chance(0.7)) return size / 2;
  if (size % 3 == 0 && gen.rng.chance(0.5)) return size / 3;
  return gen.rng.between(1, static_cast<int>(size));
}

// --- Indices ---

inline bool one_hots(Generator& gen) {
  const int x = gen.pick([&](int v) { return gen.wholes(v); });
  if (x < 0) return false;
  const Dim dim = gen.pool_dim_outside(gen.shape(x));
  if (!gen.meets(gen.shape(x), {dim})) return false;
  gen.add("one_hot", {Ref{x}, dim, 1.0, gen.rng.chance(0.5) ? 0.0 : -0.5}, {-0.5, 1});
  return true;
}

inline bool gathers(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const Shape rest = gen.shape(x).minus({dim});
  const int indices =
      gen.pick([&](int v) { return gen.wholes(v) && !gen.shape(v).has(dim.name) && gen.meets(rest, gen.shape(v)); });
  if (indices < 0) return false;
  gen.add("gather", {Ref{x}, Ref{indices}, dim}, with_zero(gen.info(x)));
  return true;
}

inline bool scatters(Generator& gen) {
  int updates = gen.pick([&](int v) { return gen.floats(v) || gen.wholes(v); });
  if (updates < 0) return false;
  const int indices = gen.pick([&](int v) { return gen.wholes(v) && gen.meets(gen.shape(updates), gen.shape(v)); });
  if (indices < 0) return false;
  const Shape all = gen.shape(updates).plus(gen.shape(indices));
  if (!same_dims(all, gen.shape(updates)))
    updates = gen.add("broadcast", {Ref{updates}, gen.shuffled(all)}, gen.info(updates));
  const Dim dim = gen.pool_dim_outside(all);
  std::vector<Dim> keep;
  for (const Dim& d : gen.shape(indices))
    if (gen.rng.chance(0.3)) keep.push_back(d);
  const Shape summed = gen.shape(indices).minus(keep);
  if (Shape{dim}.plus(all.minus(summed)).elements() > kMostElements) return false;
  Info info = with_zero(gen.info(updates));
  const double many = static_cast<double>(summed.elements());
  info = Generator::wrapped(gen.dtype(updates), {info.low * many, info.high * many, !gen.floats(updates)});
  gen.add("scatter_add", {Ref{updates}, Ref{indices}, dim, Shape(keep)}, info);
  return true;
}

inline bool largest_ones(Generator& gen) {
  int x = gen.pick([&](int v) { return !gen.truths(v) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  x = gen.exact(x);
  const Dim dim = gen.any_dim(x);
  const Info index{0, static_cast<double>(dim.size - 1)};
  const int kind = gen.rng.below(4);
  if (kind == 0) {
    gen.add(gen.rng.pick({"argmax", "argmin"}), {Ref{x}, dim}, index);
    return true;
  }
  if (kind == 3) {
    gen.add(gen.rng.pick({"nth_largest", "nth_smallest"}),
            {Ref{x}, std::int64_t{gen.rng.below(static_cast<int>(dim.size))}, dim}, gen.info(x));
    return true;
  }
  const Dim k{gen.rng.chance(0.8) ? std::string("k") : gen.new_name(gen.shape(x)),
              std::min<std::int64_t>(dim.size, gen.rng.pick(std::vector<int>{1, 2, 4, 4, 6}))};
  if (gen.shape(x).has(k.name)) return false;
  if (kind == 1) gen.add(gen.rng.pick({"top_k_values", "smallest_values"}), {Ref{x}, dim, k}, gen.info(x));
  else gen.add("top_k_indices", {Ref{x}, dim, k}, index);
  return true;
}

inline bool sorts(Generator& gen) {
  int x = gen.pick([&](int v) { return !gen.truths(v) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  x = gen.exact(x);
  const Dim dim = gen.any_dim(x);
  const bool descending = gen.rng.chance(0.5);
  if (gen.rng.chance(0.6)) gen.add("sort_values", {Ref{x}, dim, descending}, gen.info(x));
  else gen.add("sort_indices", {Ref{x}, dim, descending}, {0, static_cast<double>(dim.size - 1)});
  return true;
}

inline bool samples(Generator& gen) {
  int x = gen.pick_float(1);
  if (x < 0) return false;
  x = gen.exact(x);
  const Dim dim = gen.any_dim(x);
  gen.add("sample_categorical",
          {Ref{x}, dim, gen.rng.pick(std::vector<double>{0, 0.5, 2}), std::int64_t{gen.rng.below(4)}},
          {0, static_cast<double>(dim.size - 1)});
  return true;
}

// Whole numbers to be used as indices of x along a dim that both have; a new iota if there are none.
inline int line_indices(Generator& gen, int x) {
  const int found = gen.pick([&](int v) {
    bool fits = gen.wholes(v) && gen.shape(v).rank() > 0;
    for (const Dim& dim : gen.shape(v)) fits = fits && gen.shape(x).has(dim);
    return fits;
  });
  if (found >= 0) return found;
  const Dim dim = gen.any_dim(x);
  return gen.add("iota", {dim, DType::kI32}, {0, static_cast<double>(dim.size - 1)});
}

inline bool lines(Generator& gen) {
  const int x = gen.pick([&](int v) { return !gen.truths(v) && gen.shape(v).rank() > 0; });
  if (x < 0) return false;
  const int indices = line_indices(gen, x);
  const Dim dim = gen.any_dim(indices);
  Info info = with_zero(gen.info(x));
  if (gen.rng.chance(0.5)) {
    gen.add("take_along", {Ref{x}, Ref{indices}, dim}, info);
    return true;
  }
  const double many = static_cast<double>(dim.size);
  info = Generator::wrapped(gen.dtype(x), {info.low * many, info.high * many, info.exact && !gen.floats(x)});
  gen.add("put_along", {Ref{x}, Ref{indices}, dim}, info);
  return true;
}

inline int scalar_index(Generator& gen) {
  const int found = gen.pick([&](int v) { return gen.wholes(v) && gen.shape(v).empty(); });
  if (found >= 0) return found;
  return gen.add("constant", {static_cast<double>(gen.rng.between(-2, 14)), Shape{}, DType::kI32}, {-2, 14});
}

// Where a run along `dim` of x begins: for all of x, or for each index of other dims.
inline int begin_index(Generator& gen, int x, const Dim& dim) {
  const Shape others = gen.shape(x).minus({dim});
  const int found = gen.pick([&](int v) {
    const Shape& shape = gen.shape(v);
    return gen.wholes(v) && !shape.empty() && shape.minus(others).empty() &&
           std::all_of(shape.begin(), shape.end(), [&](const Dim& own) { return others.has(own); });
  });
  return found >= 0 && gen.rng.chance(0.5) ? found : scalar_index(gen);
}

inline bool dynamic_slices(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const int begin = begin_index(gen, x, dim);
  gen.add("dynamic_slice", {Ref{x}, Ref{begin}, dim, piece_size(gen, dim.size)}, gen.info(x));
  return true;
}

inline bool dynamic_updates(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const int other =
      gen.pick([&](int v) { return gen.dtype(v) == gen.dtype(x) && same_dims(gen.shape(v), gen.shape(x)); });
  const std::int64_t size = piece_size(gen, dim.size);
  const std::int64_t begin = gen.rng.below(static_cast<int>(dim.size - size) + 1);
  const int piece = gen.add("slice", {Ref{other}, dim, begin, size}, gen.info(other));
  const int at = begin_index(gen, x, dim);
  const Info &a = gen.info(x), &b = gen.info(piece);
  gen.add("dynamic_update", {Ref{x}, Ref{piece}, Ref{at}, dim},
          {std::min(a.low, b.low), std::max(a.high, b.high), a.exact && b.exact});
  return true;
}

inline bool scatter_updates(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const std::int64_t size = piece_size(gen, dim.size);
  const int updates = gen.add("slice", {Ref{x}, dim, dim.size - size, size}, gen.info(x));
  const std::int64_t most = dim.size + 1;
  const int places = gen.add(
      "table",
      {Shape{{dim.name, size}}, DType::kI32, -1.0, static_cast<double>(most), true, std::int64_t{gen.rng.below(1000)}},
      {-1, static_cast<double>(most - 1)});
  gen.add("scatter_update", {Ref{x}, Ref{updates}, Ref{places}, dim}, gen.info(x));
  return true;
}

// --- Dims by other names and in other orders ---

inline bool broadcasts(Generator& gen) {
  const int x = gen.pick_any();
  if (x < 0) return false;
  const Dim dim = gen.pool_dim_outside(gen.shape(x));
  if (!gen.meets(gen.shape(x), {dim})) return false;
  gen.add("broadcast", {Ref{x}, gen.shuffled(gen.shape(x).plus({dim}))}, gen.info(x));
  return true;
}

inline bool transposes(Generator& gen) {
  const int x = gen.pick_any(2);
  if (x < 0) return false;
  gen.add("transpose", {Ref{x}, gen.shuffled(gen.shape(x))}, gen.info(x));
  return true;
}

inline bool renames(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  std::vector<std::string> names = {gen.new_name(gen.shape(x))};
  for (const Dim& other : gen.pool)
    if (other.size == dim.size && !gen.shape(x).has(other.name)) names.push_back(other.name);
  gen.add("rename", {Ref{x}, dim, gen.rng.pick(names)}, gen.info(x));
  return true;
}

inline std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> found;
  for (std::int64_t d = 2; d < n; ++d)
    if (n % d == 0) found.push_back(d);
  return found;
}

// split_dim, merge_dims, and reshapes across the borders of dims.
inline bool reshapes(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Shape shape = gen.shape(x);
  const int kind = gen.rng.below(3);
  if (kind == 0) {
    const Dim dim = gen.any_dim(x);
    const std::vector<std::int64_t> sizes = divisors(dim.size);
    if (sizes.empty() || shape.rank() >= kMostRank) return false;
    const std::int64_t first = gen.rng.pick(sizes);
    const std::string name = gen.rng.chance(0.5) ? dim.name : gen.new_name(shape), minor = name == "z" ? "y" : "z";
    if (shape.has(minor)) return false;
    gen.add("split_dim",
            {Ref{x}, dim,
             gen.rng.chance(0.5) ? Shape{Dim{name, first}, Dim{minor, dim.size / first}}
                                 : Shape{Dim{minor, first}, Dim{name, dim.size / first}}},
            gen.info(x));
    return true;
  }
  if (kind == 1 && shape.rank() > 1) {
    const std::size_t at = static_cast<std::size_t>(gen.rng.below(static_cast<int>(shape.rank()) - 1));
    gen.add("merge_dims",
            {Ref{x}, Shape{shape[at], shape[at + 1]}, gen.rng.chance(0.5) ? shape[at].name : gen.new_name(shape)},
            gen.info(x));
    return true;
  }
  std::vector<Dim> dims;
  std::int64_t left = shape.elements();
  for (int i = 0; i < 2 && left > 1; ++i) {
    const std::vector<std::int64_t> sizes = divisors(left);
    if (sizes.empty()) break;
    dims.push_back({gen.new_name(shape.plus(dims)), gen.rng.pick(sizes)});
    left /= dims.back().size;
  }
  dims.push_back({gen.rng.chance(0.5) ? gen.new_name(shape.plus(dims)) : shape[0].name, left});
  gen.add("reshape", {Ref{x}, Shape(dims)}, gen.info(x));
  return true;
}

// --- Runs of elements ---

inline bool concats(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  Refs parts;
  Info info = gen.info(x);
  std::int64_t size = 0;
  for (int i = gen.rng.between(2, 3); i > 0; --i) {
    const int other = gen.pick([&](int v) {
      return gen.dtype(v) == gen.dtype(x) && gen.shape(v).has(dim.name) &&
             same_dims(gen.shape(v).resized(dim.name, 1), gen.shape(x).resized(dim.name, 1));
    });
    parts.push_back({other});
    size += gen.shape(other).size_of(dim.name);
    info = {std::min(info.low, gen.info(other).low), std::max(info.high, gen.info(other).high),
            info.exact && gen.info(other).exact};
  }
  if (gen.shape(x).resized(dim.name, size).elements() > kMostElements) return false;
  gen.add("concat", {parts, dim.name}, info);
  return true;
}

inline bool stacks(Generator& gen) {
  const int x = gen.pick_any();
  if (x < 0 || gen.shape(x).elements() * 4 > kMostElements || gen.shape(x).rank() >= kMostRank) return false;
  Refs parts;
  Info info = gen.info(x);
  for (int i = gen.rng.pick(std::vector<int>{2, 2, 3, 4}); i > 0; --i) {
    const int other =
        gen.pick([&](int v) { return gen.dtype(v) == gen.dtype(x) && same_dims(gen.shape(v), gen.shape(x)); });
    parts.push_back({other});
    info = {std::min(info.low, gen.info(other).low), std::max(info.high, gen.info(other).high),
            info.exact && gen.info(other).exact};
  }
  gen.add("stack",
          {parts, gen.rng.chance(0.5) && !gen.shape(x).has("s") ? std::string("s") : gen.new_name(gen.shape(x))}, info);
  return true;
}

inline bool pieces(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const int n = static_cast<int>(dim.size);
  const std::vector<std::int64_t> parts = divisors(dim.size);
  const int kind = gen.rng.below(3);
  if (kind == 0 && !parts.empty()) {
    const std::int64_t many = gen.rng.pick(parts);
    gen.add("split", {Ref{x}, dim, many, std::int64_t{gen.rng.below(static_cast<int>(many))}}, gen.info(x));
  } else if (kind == 1 && n <= 12) {
    gen.add("unstack", {Ref{x}, dim, std::int64_t{gen.rng.below(n)}}, gen.info(x));
  } else {
    const std::int64_t size = piece_size(gen, dim.size);
    gen.add("slice", {Ref{x}, dim, std::int64_t{gen.rng.below(static_cast<int>(dim.size - size) + 1)}, size},
            gen.info(x));
  }
  return true;
}

inline bool pads(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const std::int64_t more = gen.rng.chance(0.7) ? dim.size : gen.rng.between(1, 6),
                     before = gen.rng.below(static_cast<int>(more) + 1);
  if (gen.shape(x).elements() / dim.size * (dim.size + more) > kMostElements) return false;
  gen.add("pad", {Ref{x}, dim, before, more - before}, with_zero(gen.info(x)));
  return true;
}

inline bool shifts(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const int n = static_cast<int>(dim.size);
  gen.add("shift", {Ref{x}, dim, std::int64_t{gen.rng.between(-n - 1, n + 1)}, gen.rng.chance(0.5)},
          with_zero(gen.info(x)));
  return true;
}

inline bool dynamic_shifts(Generator& gen) {
  const int x = gen.pick_any(1);
  if (x < 0) return false;
  const Dim dim = gen.any_dim(x);
  const int offset = gen.pick([&](int v) {
    bool fits = is_integer(gen.dtype(v)) && gen.dtype(v) != DType::kU8 && gen.bound(v) <= 1e5;
    for (const Dim& d : gen.shape(v)) fits = fits && d.name != dim.name && gen.shape(x).has(d);
    return fits;
  });
  if (offset < 0 || gen.dtype(offset) == DType::kU32) return false;
  gen.add("dynamic_shift", {Ref{x}, Ref{offset}, dim, gen.rng.chance(0.5)}, with_zero(gen.info(x)));
  return true;
}

inline const Moves kShapeMoves = {
    {"sorts", sorts, 2},
    {"samples", samples, 1},
    {"lines", lines, 3},
    {"dynamic_shifts", dynamic_shifts, 2},
    {"one_hots", one_hots},
    {"gathers", gathers, 3},
    {"scatters", scatters, 3},
    {"largest", largest_ones, 3},
    {"dynamic_slices", dynamic_slices},
    {"dynamic_updates", dynamic_updates},
    {"scatter_updates", scatter_updates},
    {"broadcasts", broadcasts},
    {"transposes", transposes, 1},
    {"renames", renames},
    {"reshapes", reshapes, 4},
    {"concats", concats, 3},
    {"stacks", stacks},
    {"pieces", pieces, 3},
    {"pads", pads},
    {"shifts", shifts, 3},
};

}  // namespace weft::random_graphs
