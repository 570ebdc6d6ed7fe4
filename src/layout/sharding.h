// Sharding: how one value is split over the mesh. Per dim an ordered list of axes (major to minor), and the axes over
// which a reduction is still pending. Invariant: an axis occurs at most once in a sharding.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "base/reduce.h"
#include "weft/dim.h"
#include "weft/mesh.h"

namespace weft {

struct Sharding {
  std::vector<Axes> dims;         // one list per dim of the value's shape, in its order
  Axes partial;                   // pending axes, ascending
  Reduce pending = Reduce::kSum;  // meaningful if partial is not empty

  bool is_partial() const { return !partial.empty(); }
  bool splits_nothing() const;
  bool uses(int axis) const;
  bool operator==(const Sharding&) const = default;
};

// A sharding without split dims.
Sharding unsplit(const Shape& shape);

// The shape of one processor's shard. Sizes must divide; check_divides checks it.
Shape local_shape(const Shape& global, const Sharding& sharding, const Mesh& mesh);
Shape global_shape(const Shape& local, const Sharding& sharding, const Mesh& mesh);

// The axes over which every processor holds the same shard.
Axes replicated_axes(const Sharding& sharding, const Mesh& mesh);

// The first global index, per dim, of the shard of a processor.
std::vector<std::int64_t> shard_begin(const Shape& local, const Sharding& sharding, const Mesh& mesh,
                                      ProcessorId processor);

// "{batch:data heads:model | sum:rows}"; "{}" if nothing is split.
std::string text_of(const Sharding& sharding, const Shape& shape, const Mesh& mesh);

// "data+model".
std::string text_of(const Axes& axes, const Mesh& mesh);

// "data=1 model=0": the coordinates of a processor.
std::string coordinates_text(const Mesh& mesh, ProcessorId processor);

}  // namespace weft
