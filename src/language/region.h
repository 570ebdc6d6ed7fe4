// A region: a run of nodes that can be made again with other operands. What recompute(), loop() and reversible() are
// built on.
#pragma once

#include <map>
#include <vector>

#include "language/op_def.h"

namespace weft {

// The dim behind the batch that counts its microbatches.
inline constexpr const char* kMicrobatchPart = "#part";

// The nodes from `first` to before `last` that are in the body of `loop` itself (-1: in none); no state among them.
struct Region {
  int first = 0, last = 0;
  int loop = -1;
};

bool is_in(const GraphData& graph, const Region& region, int node);

// What the region reads from outside, each tensor once, in order of first use; then the results that are themselves
// outside of it.
std::vector<TensorId> captures_of(const GraphData& graph, const Region& region, const std::vector<TensorId>& results);

// Makes the nodes that `results` stand on again: same names, so the same random numbers; marked as recomputed.
// Outside tensors are replaced by `by` where it has them.
Tensors clone_region(const std::shared_ptr<GraphData>& graph, const Region& region,
                     const std::map<TensorId, Tensor>& by, const std::vector<TensorId>& results);

// As gradients(), through nodes from `first` on alone: each x is taken as a value of its own.
Tensors gradients_from(int first, const Tensors& ys, const Tensors& xs, const Tensors& dys, Site site);

}  // namespace weft
