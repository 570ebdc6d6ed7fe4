// Growing a recipe step by step. The moves (moves_*.h) pick operands and add steps; the generator keeps the graph so
// far, and of each tensor a range and whether its bits are the same under every layout.
//
// Numbers stay tame by their ranges: no overflow, no division by what may be zero. Whatever jumps (comparisons, top_k,
// rounding) takes only exact operands, so that a last bit that differs by the order of a sum cannot flip it.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "build.h"
#include "rng.h"

namespace weft::random_graphs {

struct Info {
  double low = 0, high = 0;
  bool exact = true;
};

constexpr std::int64_t kMostElements = 1200, kMostWork = 20000;
constexpr std::size_t kMostRank = 4;

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng(seed) { recipe.seed = seed; }

  // The dtype of most floats. The others (random numbers, one_hot) are f32, and cast before they meet these.
  DType real() const { return recipe.narrow ? DType::kBF16 : DType::kF32; }

  Rng rng;
  Recipe recipe;
  Graph graph;
  Tensors values;
  std::vector<Info> infos;

  int add(const std::string& function, std::vector<Arg> args, Info info) {
    recipe.steps.push_back({function, std::move(args)});
    const Step& step = recipe.steps.back();
    values.push_back(call_of(step).build(graph, Args(step, values)));
    infos.push_back(info);
    return static_cast<int>(values.size()) - 1;
  }
  // The same, as one of the floats.
  int add_real(const std::string& function, std::vector<Arg> args, Info info) {
    const int v = add(function, std::move(args), info);
    return is_float(dtype(v)) && !floats(v) ? add("cast", {Ref{v}, real()}, info) : v;
  }
  int count() const { return static_cast<int>(values.size()); }
  const Shape& shape(int v) const { return values[static_cast<std::size_t>(v)].shape(); }
  DType dtype(int v) const { return values[static_cast<std::size_t>(v)].dtype(); }
  const Info& info(int v) const { return infos[static_cast<std::size_t>(v)]; }
  double bound(int v) const { return std::max(std::fabs(info(v).low), std::fabs(info(v).high)); }

  // Another tensor with the same dims and dtype; x itself if there is none.
  int pick_alike(int x) {
    return pick([&](int v) { return dtype(v) == dtype(x) && same_dims(shape(v), shape(x)); });
  }
  // A tensor that fits, later ones rather than early ones; -1 if there is none.
  int pick(const std::function<bool(int)>& fits) {
    std::vector<int> found;
    for (int v = 0; v < count(); ++v)
      if (fits(v)) found.push_back(v);
    if (found.empty()) return -1;
    const int n = static_cast<int>(found.size());
    return found[static_cast<std::size_t>(rng.chance(0.5) ? std::max(rng.below(n), rng.below(n)) : rng.below(n))];
  }
  bool floats(int v) const { return dtype(v) == real(); }
  bool wholes(int v) const { return is_integer(dtype(v)) && bound(v) <= 1e5; }
  bool truths(int v) const { return dtype(v) == DType::kBool; }
  int pick_float(std::size_t rank = 0) {
    return pick([&](int v) { return floats(v) && shape(v).rank() >= rank; });
  }
  int pick_any(std::size_t rank = 0) {
    return rng.chance(0.75) ? pick_float(rank) : pick([&](int v) { return shape(v).rank() >= rank; });
  }

  // Whether two shapes can meet in one op: common names have one size, and the union is small.
  bool meets(const Shape& a, const Shape& b, std::int64_t most = kMostElements) const {
    for (const Dim& dim : b)
      if (a.has(dim.name) && !a.has(dim)) return false;
    const Shape all = a.plus(b);
    return all.elements() <= most && (most > kMostElements || all.rank() <= kMostRank);
  }
  int pick_partner(int x, std::int64_t most = kMostElements) {
    return pick([&](int v) { return dtype(v) == dtype(x) && meets(shape(x), shape(v), most); });
  }
  Dim any_dim(int v) { return rng.pick(shape(v).dims()); }
  // Some of the dims, at least one, in order.
  Shape some_dims(int v) {
    std::vector<Dim> dims;
    for (const Dim& dim : shape(v))
      if (rng.chance(0.5)) dims.push_back(dim);
    if (dims.empty() && !shape(v).empty()) dims.push_back(any_dim(v));
    return dims;
  }
  Shape shuffled(const Shape& shape) {
    std::vector<Dim> dims = shape.dims();
    rng.shuffle(dims);
    return dims;
  }
  Dim pool_dim() { return rng.pick(pool); }
  Dim pool_dim_outside(const Shape& shape) {
    for (int i = 0;; ++i)
      if (Dim dim = pool_dim(); !shape.has(i < 40 ? dim.name : dim.name += std::to_string(i))) return dim;
  }
  std::string new_name(const Shape& shape) {
    for (int i = 0;; ++i)
      if (const std::string name = rng.pick({"m", "n", "u", "v", "w"}) + (i < 20 ? "" : std::to_string(i));
          !shape.has(name))
        return name;
  }
  Shape pool_shape(int most_rank, std::int64_t most = 600) {
    std::vector<Dim> dims;
    for (int i = rng.between(1, most_rank); i > 0; --i) {
      const Dim dim = pool_dim_outside(Shape(dims));
      if (Shape(dims).elements() * dim.size <= most) dims.push_back(dim);
    }
    return dims;
  }

  // --- Bringing an operand into a range that an op needs ---

  int scaled(int v, double by) {
    const double a = info(v).low * by, b = info(v).high * by;
    return add("scale", {Ref{v}, by}, {std::min(a, b), std::max(a, b), info(v).exact});
  }
  int plus(int v, double by) {
    return add("add_number", {Ref{v}, by}, {info(v).low + by, info(v).high + by, info(v).exact});
  }
  int small(int v) { return bound(v) <= 2 ? v : add("tanh", {Ref{v}}, {-1, 1, info(v).exact}); }
  int unit(int v) { return bound(v) <= 1.2 ? v : add("tanh", {Ref{v}}, {-1, 1, info(v).exact}); }
  int positive(int v) {
    if (info(v).low >= 0.25 && info(v).high <= 6) return v;
    return plus(add("sigmoid", {Ref{v}}, {0, 1, info(v).exact}), 0.3);
  }
  // Rounded so coarsely that the last bits of a sum do not show.
  int exact(int v) {
    if (info(v).exact) return v;
    const int moved = plus(scaled(v, 8), 0.37);
    return add("floor", {Ref{moved}}, {std::floor(info(moved).low), std::floor(info(moved).high), true});
  }
  // The range of a whole number of some dtype: unsigned ones wrap.
  static Info wrapped(DType dtype, Info info) {
    const double most = dtype == DType::kU8 ? 255 : dtype == DType::kU32 ? 4294967295.0 : INFINITY;
    return std::isfinite(most) && (info.low < 0 || info.high > most) ? Info{0, most} : info;
  }
  // What came out of a move, made small enough for the next one.
  int tame(int v) {
    if (floats(v) && bound(v) > 6) return rng.chance(0.3) && bound(v) < 40 ? small(v) : scaled(v, 2 / bound(v));
    if (is_integer(dtype(v)) && bound(v) > 200) return add("mod_number", {Ref{v}, 11.0}, {0, 10, true});
    return v;
  }

  // Dims to draw from.
  std::vector<Dim> pool = {{"a", 12}, {"b", 24}, {"c", 6}, {"d", 4}, {"e", 8}, {"f", 12}, {"h", 2}};
};

// Adds steps to the recipe; false if nothing there fits.
struct Move {
  const char* name;
  std::function<bool(Generator&)> make;
  int weight = 2;
  bool tame = true;  // whether what it makes is brought back into a small range
};
using Moves = std::vector<Move>;

// Draws moves until one fits.
inline void make_one(Generator& gen, const Moves& moves) {
  int total = 0;
  for (const Move& move : moves) total += move.weight;
  for (int tries = 0; tries < 20; ++tries) {
    int at = gen.rng.below(total);
    for (const Move& move : moves) {
      at -= move.weight;
      if (at >= 0) continue;
      if (!move.make(gen)) break;
      if (move.tame) gen.tame(gen.count() - 1);
      return;
    }
  }
}

}  // namespace weft::random_graphs
