// Storage layouts: how variables are stored between steps, and which shardings the ops that update them must use.
//
// A variable that a storage layout splits is updated on its stored shards. So its `assign` requests these shards, and
// the request moves backwards through the pointwise ops of the update to the gradient, which is then reduced and
// scattered. All other ops (reductions over a split dim, ops without a request) follow their operands.
#pragma once

#include <map>
#include <set>
#include <string>

#include "language/graph_data.h"
#include "layout/resolve.h"
#include "weft/mesh.h"

namespace weft {

// Whether variables with these options are stored split (the optimizer's state at every level, parameters at level 3),
// and whether they are at least updated in split form.
bool is_stored_split(const Store& store, const VariableOptions& options);
bool is_updated_split(const Store& store, const VariableOptions& options);

// Adds the axes of a storage layout to `compute`, the sharding of the shape under the layout: first the axes of rules
// that name a dim, then the axes of `*` on the first dim whose shard still divides. An axis that splits the shape
// already adds nothing. UserError if two rules put dims of the shape on one axis, or a named dim does not divide.
Sharding stored_sharding(const DimAxes& rules, const Shape& shape, const Sharding& compute, const Mesh& mesh,
                         const SubjectMaker& subject);

// The shardings that a storage layout requests of the nodes of a graph.
class StorePlan {
 public:
  struct Request {
    const GraphData& graph;
    const std::vector<NodeId>& needed;  // nodes, ascending
    const Mesh& mesh;
    const Layout& layout;
    const DimAxes& global;  // of the layout
    const Store& store;
    const DimAxes& rules;  // of the store
  };
  StorePlan() = default;  // requests nothing
  explicit StorePlan(const Request& request);

  // The axes that a node's dims must have: of a stored variable, an assign, a pointwise op of the update. Null: no
  // request.
  const DimAxes* axes(NodeId node) const;
  // The sharding in which the update reads a tensor whose op has no requested axes, such as a gradient; null: no
  // request.
  const Sharding* want(TensorId id) const;
  // Whether the tensor is a sum of a loop that must be accumulated in the shards that the update requests.
  bool is_summed_in_shards(TensorId id) const { return sums_.contains(id); }
  // Whether ops outside the update use the tensor too: then it also exists in the layout's sharding.
  bool is_used_elsewhere(TensorId id) const { return elsewhere_.contains(id); }
  // Whether the tensor is a variable, also behind casts, that is stored in smaller shards than ops use.
  bool is_held_split(const GraphData& graph, TensorId id) const;

 private:
  void add_variable(const Request& r, NodeId n);
  void add_assign(const Request& r, NodeId n);
  void flow(const Request& r, NodeId n);
  bool is_summed_in_shards(const Request& r, TensorId id) const;
  void propose(const Request& r, TensorId id, const DimAxes& axes);

  std::map<NodeId, DimAxes> axes_;
  std::map<TensorId, Sharding> wants_;
  std::map<NodeId, DimAxes> updates_;  // variable node -> the axes it is updated in, if they differ from the layout's
  std::set<NodeId> held_;              // variable nodes
  std::set<TensorId> sums_;            // sums of loops that are accumulated in shards
  std::set<TensorId> elsewhere_;       // tensors that ops outside the update use
};

// Whether a node follows the update's requests: ops of the update, and assignments in any phase.
bool is_update(const Node& node);

}  // namespace weft
