// The moves between shardings of one value, with their bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "program/ir.h"

namespace weft {

inline void append(Axes& axes, const Axes& more) { axes.insert(axes.end(), more.begin(), more.end()); }

struct Move {
  Operation operation;
  std::int64_t bytes = 0;  // received per processor
  Sharding to;
};

// The moves of one value of a global shape, restricted to the axes and pending reductions that the moves may touch.
// Axes of size 1 must not occur.
class Moves {
 public:
  Moves(const Shape& global, DType dtype, const Mesh& mesh, const Sharding& have, const Sharding& want);

  // Every single step from a sharding, in a fixed order, with its cost:
  //   shard           a dim over unused axes: free
  //   all_gather      minor axes of a dim: the bytes that arrive
  //   all_to_all      minor axes of a dim onto another dim: local * (n - 1) / n
  //   all_reduce      pending axes: 2 local * (n - 1) / n
  //   reduce_scatter  pending axes onto a dim: local * (n - 1) / n
  //   permute         to any sharding with the same local shape and the same pending axes: local
  // Only `completed` fills in the table of a permute, because most moves are never taken.
  std::vector<Move> from(const Sharding& sharding) const;
  Operation completed(const Move& move, const Sharding& from) const;

  std::int64_t local_elements(const Sharding& sharding) const;

 private:
  void add_shards(const Sharding& from, std::vector<Move>& moves) const;
  void add_gathers(const Sharding& from, std::vector<Move>& moves) const;
  void add_reductions(const Sharding& from, std::vector<Move>& moves) const;
  void add_permutes(const Sharding& from, std::vector<Move>& moves) const;
  void add_permutes(const Sharding& from, Sharding& to, std::size_t dim, std::vector<Move>& moves) const;
  bool splits_evenly(const Sharding& sharding, std::size_t dim) const;
  Axes unused(const Sharding& sharding) const;

  const Shape& global_;
  const Mesh& mesh_;
  std::int64_t element_bytes_;
  Axes axes_;       // used before or after
  Axes reducible_;  // pending before and not after, ascending
};

}  // namespace weft
