#include "stablehlo/storage.h"

#include <algorithm>

#include "base/index.h"
#include "base/str.h"
#include "language/shape_math.h"

namespace weft::stablehlo {

namespace {

// Steps descending; neighbours that follow each other without a gap become one level.
std::vector<Level> merged(std::vector<Level> levels) {
  std::erase_if(levels, [](const Level& level) { return level.size == 1; });
  std::sort(levels.begin(), levels.end(), [](const Level& a, const Level& b) { return a.step > b.step; });
  std::vector<Level> out;
  for (const Level& level : levels)
    if (!out.empty() && out.back().step == level.size * level.step && out.back().dense == level.size * level.dense)
      out.back() = {out.back().size * level.size, level.step, level.dense};
    else out.push_back(level);
  return out;
}

// A dim of a view over a dense array: element i is i * step after the first.
struct Walk {
  std::string dim;  // "" for a dim of size 1 that only marks a border in the root's shape
  std::int64_t size = 1, step = 1;
};

// The view in terms of the dense root: its offset there and a step per dim.
struct DenseView {
  std::int64_t offset = 0;
  Sizes steps;
};

// Finds for a distance in the storage the coordinates along the levels, major to minor.
Sizes coordinates(std::int64_t distance, const std::vector<Level>& levels) {
  Sizes all;
  for (const Level& level : levels) {
    all.push_back(distance / level.step);
    distance %= level.step;
  }
  all.push_back(distance);
  return all;
}

std::optional<DenseView> on_root(const Stored& value) {
  DenseView out;
  const Sizes first = coordinates(value.offset, value.levels);
  if (value.offset < 0 || first.back() != 0) return std::nullopt;
  Sizes least(first.begin(), first.end() - 1), most = least;
  for (std::size_t i = 0; i < least.size(); ++i) out.offset += least[i] * value.levels[i].dense;
  for (std::size_t d = 0; d < value.shape.rank(); ++d) {
    if (value.shape[d].size == 1) {
      out.steps.push_back(0);
      continue;
    }
    const std::int64_t sign = value.strides[d] < 0 ? -1 : 1;
    const Sizes step = coordinates(sign * value.strides[d], value.levels);
    if (step.back() != 0) return std::nullopt;
    std::int64_t dense = 0;
    for (std::size_t i = 0; i < least.size(); ++i) {
      dense += sign * step[i] * value.levels[i].dense;
      (sign < 0 ? least : most)[i] += sign * step[i] * (value.shape[d].size - 1);
    }
    out.steps.push_back(dense);
  }
  for (std::size_t i = 0; i < least.size(); ++i)
    if (least[i] < 0 || most[i] >= value.levels[i].size) return std::nullopt;
  return out;
}

// Cuts the dense root into [rows, chunk], the chunk again, and so on: the dims of a reshape. Each walk takes places along
// one of them. Cuts lie at borders of the root's own dims where they can, so that the reshape changes little.
class Cutter {
 public:
  Cutter(Writer& writer, const Term& root, std::int64_t offset)
      : w_(writer), root_(root), offset_(offset), length_(root.shape.elements()), borders_(dense_strides(root.shape)) {}

  // Walks sorted by step, descending. False if one does not stay within the chunk of the walk before it.
  bool cut(const std::vector<Walk>& walks) {
    for (std::size_t i = 0; i < walks.size(); ++i) {
      const std::int64_t together = reach(walks, i), inner = reach(walks, i + 1), step = walks[i].step;
      // Dims of the root of which the view has one index.
      for (const std::int64_t border : borders_)
        if (border > step && border < length_ && cuts(border) && offset_ % border + together < border)
          add({"", 1, border}, border);
      const auto fits = [&](std::int64_t chunk) {
        return chunk <= step && step % chunk == 0 && cuts(chunk) && offset_ % chunk + inner < chunk;
      };
      const auto found = std::find_if(borders_.begin(), borders_.end(), fits);
      if (found == borders_.end() && !fits(step)) return false;
      add(walks[i], found == borders_.end() ? step : *found);
    }
    for (const std::int64_t border : borders_)
      if (border < length_ && cuts(border)) add({"", 1, border}, border);
    return true;
  }

  // The root cut, and of every cut the places that the view has.
  Term term(const Shape& order) {
    Term x = w_.reshape(root_, Shape(cuts_));
    Shape kept;
    for (std::size_t i = 0; i < cuts_.size(); ++i) {
      const auto& [walk, begin, step] = places_[i];
      x = w_.slice(x, cuts_[i].name, begin, begin + (walk.size - 1) * step + 1, step);
      if (!walk.dim.empty()) kept = kept.plus({{walk.dim, walk.size}});
    }
    return w_.transpose(w_.reshape(x, kept), order);
  }

 private:
  struct Places {
    Walk walk;
    std::int64_t begin, step;
  };

  // How far all walks from i on go together.
  static std::int64_t reach(const std::vector<Walk>& walks, std::size_t i) {
    std::int64_t sum = 0;
    for (; i < walks.size(); ++i) sum += (walks[i].size - 1) * walks[i].step;
    return sum;
  }

  bool cuts(std::int64_t chunk) const { return chunk <= length_ && length_ % chunk == 0; }

  void add(const Walk& walk, std::int64_t chunk) {
    cuts_.push_back({str("c", cuts_.size()), length_ / chunk});
    places_.push_back({walk, offset_ / chunk, walk.step / chunk});
    offset_ %= chunk;
    length_ = chunk;
  }

  Writer& w_;
  Term root_;
  std::int64_t offset_, length_;  // of the chunk that is cut next
  Sizes borders_;
  std::vector<Dim> cuts_;
  std::vector<Places> places_;
};

// Any view: the elements are taken from the flat root by their numbers.
Term taken_one_by_one(Writer& w, const Term& root, const Shape& shape, std::int64_t offset, const Sizes& steps) {
  Term place = w.number(offset, "i64", shape);
  for (std::size_t d = 0; d < shape.rank(); ++d) {
    if (steps[d] == 0) continue;
    const Term index = w.iota(shape, shape[d].name, "i64");
    place = w.apply("add", {place, w.apply("multiply", {index, w.number(steps[d], "i64", shape)})});
  }
  const Term flat = w.reshape(root, {{"#flat", root.shape.elements()}});
  return w.generic("gather", {flat, place},
                   str("{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], "
                       "index_vector_dim = ",
                       shape.rank(),
                       ">, slice_sizes = array<i64: 1>, "
                       "indices_are_sorted = false}"),
                   root.element, shape);
}

}  // namespace

Stored stored(const Term& term) {
  const Sizes strides = dense_strides(term.shape);
  std::vector<Level> levels;
  for (std::size_t i = 0; i < term.shape.rank(); ++i) levels.push_back({term.shape[i].size, strides[i], strides[i]});
  return {term, merged(levels), term.shape, 0, strides};
}

Stored stored_part(const Term& shard, const Stored& whole) {
  const Sizes dense = dense_strides(shard.shape);
  std::vector<Level> levels;
  for (std::size_t i = 0; i < shard.shape.rank(); ++i)
    levels.push_back({shard.shape[i].size, whole.strides[i], dense[i]});
  return {shard, merged(levels), shard.shape, 0, whole.strides};
}

Stored view_of(const Stored& x, const Shape& shape, std::int64_t offset, const Sizes& strides) {
  return {x.root, x.levels, shape, x.offset + offset, strides};
}

std::optional<Term> dense_term(Writer& w, const Stored& value) {
  const std::optional<DenseView> view = on_root(value);
  if (!view) return std::nullopt;
  std::int64_t offset = view->offset;
  std::vector<Walk> walks;
  Shape walked;
  std::vector<std::string> reversed;
  for (std::size_t d = 0; d < value.shape.rank(); ++d) {
    std::int64_t step = view->steps[d];
    if (step == 0) continue;
    if (step < 0) {
      offset += step * (value.shape[d].size - 1);
      step = -step;
      reversed.push_back(value.shape[d].name);
    }
    walks.push_back({value.shape[d].name, value.shape[d].size, step});
    walked = walked.plus({value.shape[d]});
  }
  std::stable_sort(walks.begin(), walks.end(), [](const Walk& a, const Walk& b) { return a.step > b.step; });
  Cutter cutter(w, value.root, offset);
  if (!cutter.cut(walks)) return taken_one_by_one(w, value.root, value.shape, view->offset, view->steps);
  const Term term = w.reverse(cutter.term(walked), reversed);
  // What is left are dims of size 1 and repeated elements.
  return w.broadcast(term, value.shape);
}

}  // namespace weft::stablehlo
