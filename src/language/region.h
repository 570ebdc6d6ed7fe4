// A region: a range of nodes that can be cloned with other operands. recompute(), loop() and reversible() use it.
#pragma once

#include <map>
#include <vector>

#include "language/op_def.h"

namespace weft {

// The dim after the batch dim that counts its microbatches.
inline constexpr const char* kMicrobatchPart = "#part";

// The nodes from `first` to before `last` that are directly in the body of `loop` (-1: in no loop). It contains no
// inputs and no variables.
struct Region {
  NodeId first, last;
  int loop = -1;
};

bool is_in(const GraphData& graph, const Region& region, NodeId node);

// The tensors that the region reads from outside, each once, in order of first use; then the results that are
// themselves outside of it.
std::vector<TensorId> captures_of(const GraphData& graph, const Region& region, const std::vector<TensorId>& results);

// Clones the nodes that `results` depend on. Clones have the same names, so they draw the same random numbers, and are
// marked as recomputed. Outside tensors are replaced by their entries in `by`, if there are any.
Tensors clone_region(const std::shared_ptr<GraphData>& graph, const Region& region,
                     const std::map<TensorId, Tensor>& by, const std::vector<TensorId>& results);

// Like gradients(), but only through the nodes from `first` on: each x is treated as independent of earlier nodes.
Tensors gradients_from(NodeId first, const Tensors& ys, const Tensors& xs, const Tensors& dys, Site site);

}  // namespace weft
