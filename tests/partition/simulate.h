// A simulator of shards and collectives: one array per processor, instructions by their definition in program/ir.h.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "base/index.h"
#include "program/ir.h"

namespace weft::test {

struct Block {
  Shape shape;
  std::vector<double> data;
};
using LocalBlocks = Indexed<ProcessorId, Block>;

inline void each_index(const Shape& shape, const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> index(shape.rank(), 0);
  for (std::int64_t count = shape.elements(); count > 0; --count) {
    visit(index);
    for (std::size_t d = shape.rank(); d-- > 0;) {
      if (++index[d] < shape[d].size) break;
      index[d] = 0;
    }
  }
}

inline std::size_t offset(const Shape& shape, const std::vector<std::int64_t>& index) {
  std::int64_t result = 0;
  for (std::size_t d = 0; d < shape.rank(); ++d) result = result * shape[d].size + index[d];
  return static_cast<std::size_t>(result);
}

inline Block cut(const Block& x, const std::string& dim, std::int64_t part, std::int64_t parts) {
  Block out{x.shape.resized(dim, x.shape.size_of(dim) / parts), {}};
  const std::size_t d = x.shape.position(dim);
  each_index(out.shape, [&](std::vector<std::int64_t> index) {
    index[d] += part * out.shape[d].size;
    out.data.push_back(x.data[offset(x.shape, index)]);
  });
  return out;
}

inline Block side_by_side(const std::vector<Block>& xs, const std::string& dim) {
  const std::int64_t each = xs[0].shape.size_of(dim);
  Block out{xs[0].shape.resized(dim, each * static_cast<std::int64_t>(xs.size())), {}};
  const std::size_t d = out.shape.position(dim);
  each_index(out.shape, [&](std::vector<std::int64_t> index) {
    const Block& x = xs[static_cast<std::size_t>(index[d] / each)];
    index[d] %= each;
    out.data.push_back(x.data[offset(x.shape, index)]);
  });
  return out;
}

inline double joined(Reduce how, double a, double b) {
  switch (how) {
    case Reduce::kSum: return a + b;
    case Reduce::kMax: return std::max(a, b);
    case Reduce::kMin: return std::min(a, b);
    case Reduce::kProduct: return a * b;
  }
  return 0;
}

inline Block reduced(Reduce how, const std::vector<Block>& xs) {
  Block out = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i)
    for (std::size_t j = 0; j < out.data.size(); ++j) out.data[j] = joined(how, out.data[j], xs[i].data[j]);
  return out;
}

struct Simulator {
  const Mesh& mesh;

  std::vector<Block> group_of(const LocalBlocks& all, ProcessorId p, const Axes& axes) const {
    std::vector<Block> result;
    for (const ProcessorId member : mesh.group(p, axes)) result.push_back(all[member]);
    return result;
  }

  Block after(const LocalBlocks& all, ProcessorId p, const Operation& operation) const {
    if (const auto* w = std::get_if<Shard>(&operation))
      return cut(all[p], w->dim, mesh.coordinate(p, w->axes), mesh.size(w->axes));
    if (const auto* w = std::get_if<AllGather>(&operation)) return side_by_side(group_of(all, p, w->axes), w->dim);
    if (const auto* w = std::get_if<AllReduce>(&operation)) return reduced(w->how, group_of(all, p, w->axes));
    if (const auto* w = std::get_if<ReduceScatter>(&operation))
      return cut(reduced(w->how, group_of(all, p, w->axes)), w->dim, mesh.coordinate(p, w->axes), mesh.size(w->axes));
    if (const auto* w = std::get_if<AllToAll>(&operation)) {
      std::vector<Block> mine;
      for (const Block& x : group_of(all, p, w->axes))
        mine.push_back(cut(x, w->split, mesh.coordinate(p, w->axes), mesh.size(w->axes)));
      return side_by_side(mine, w->gather);
    }
    const auto& w = std::get<Permute>(operation);
    EXPECT_EQ(static_cast<int>(w.to.size()), mesh.size(w.axes));
    Block out{all.front().shape, std::vector<double>(all.front().data.size(), 0.0)};
    int senders = 0;
    for (std::size_t r = 0; r < w.to.size(); ++r)
      if (w.to[r] == mesh.coordinate(p, w.axes) && ++senders) out = group_of(all, p, w.axes)[r];
    EXPECT_LE(senders, 1);
    return out;
  }
};

}  // namespace weft::test
