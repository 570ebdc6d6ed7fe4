// Graph + mesh + layout -> program. Every value has the sharding of the global layout, unless with_layout() says
// otherwise. Reductions are placed where a partial value arises (the pass place_reductions moves them).
#pragma once

#include <optional>
#include <vector>

#include "language/graph_data.h"
#include "program/ir.h"
#include "weft/mesh.h"

namespace weft {

struct PartitionRequest {
  const GraphData* graph = nullptr;
  std::vector<TensorId> fetch;   // become the program's outputs, in this order
  std::vector<TensorId> update;  // assign ops to run
  bool metrics = false;          // report the graph's scalar metrics
  Mesh mesh;
  Layout layout;
  Store store = {};
  std::optional<DType> compute_as;  // f64: every float becomes f64, with the same random draws
};

// UserError, with the fix, for a layout that cannot work.
Program partition(const PartitionRequest& request);

}  // namespace weft
