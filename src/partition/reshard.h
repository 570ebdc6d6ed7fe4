// Moves a value from its sharding to any other, by the collectives that send the fewest bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "program/builder.h"

namespace weft {

// One step of a path: a shard, collective or permute, as the builder appends it. A permute along no axes only changes
// the sharding by axes of size 1.
struct ReshardStep {
  Operation operation;
  std::int64_t bytes = 0;  // received by each processor that receives, rounded up
  Sharding after = {};     // the sharding of the value after it
};

// The cheapest path (bytes, then number of collectives, then peak elements held) from one sharding of a global shape to
// another. `want` may keep pending axes of `have` pending, but add none; a path to every such `want` exists. The path
// uses only axes of `have` and `want`: a value that is replicated over an axis before and after is never split over it
// in between, even if that would save bytes. Memoised per thread.
std::vector<ReshardStep> reshard_path(const Shape& global, DType dtype, const Sharding& have, const Sharding& want,
                                      const Mesh& mesh);

// Appends that path; returns the value with the sharding `want` (`x` itself if it has it already).
ValueId reshard(Builder& builder, ValueId x, const Sharding& want);

}  // namespace weft
