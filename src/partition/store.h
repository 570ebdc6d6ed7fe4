// Storage layouts: how variables are held from step to step, and what that asks of the ops that update them.
//
// A variable that a storage layout splits is updated on those shards. So its `assign` wants them, and the want flows
// backwards through the pointwise ops of the update to the gradient, which is then reduced and scattered. What is left
// (reductions over a split dim, ops without a want) follows its operands.
#pragma once

#include <map>
#include <set>
#include <string>

#include "language/graph_data.h"
#include "layout/resolve.h"
#include "weft/mesh.h"

namespace weft {

// Whether variables with these options are held split (the optimizer's state at every level, parameters at level 3),
// and whether they are at least updated so.
bool is_stored_split(const Store& store, const VariableOptions& options);
bool is_updated_split(const Store& store, const VariableOptions& options);

// The axes of a storage layout behind those of `compute`, in which a shape lies by the layout: first those of rules
// that name a dim, then those of `*` on the first dim whose shard still divides. An axis that splits the shape already
// adds nothing. UserError if two rules lay dims of the shape on one axis, or a named dim does not divide.
Sharding stored_sharding(const DimAxes& rules, const Shape& shape, const Sharding& compute, const Mesh& mesh,
                         const Subject& subject);

// What a storage layout asks of the nodes of a graph.
class StorePlan {
 public:
  struct Request {
    const GraphData& graph;
    const std::set<int>& needed;  // nodes
    const Mesh& mesh;
    const Layout& layout;
    const DimAxes& global;  // of the layout
    const Store& store;
    const DimAxes& rules;  // of the store
  };
  StorePlan() = default;  // asks nothing
  explicit StorePlan(const Request& request);

  // The axes that a node's dims must have: of a held variable, an assign, a pointwise op of the update. Null: its own.
  const DimAxes* axes(int node) const;
  // How the update wants a tensor whose op has axes of its own, such as a gradient; null if it does not care.
  const Sharding* want(TensorId id) const;
  // Whether the tensor is a sum of a loop that is to be made in the shards that the update wants.
  bool is_summed_in_shards(TensorId id) const { return sums_.contains(id); }
  // Whether ops outside the update use the tensor too: then it lies by the layout as well.
  bool is_used_elsewhere(TensorId id) const { return elsewhere_.contains(id); }
  // Whether the tensor is a variable, perhaps behind casts, that is held in smaller shards than ops use.
  bool is_held_split(const GraphData& graph, TensorId id) const;

 private:
  void add_variable(const Request& r, int n);
  void add_assign(const Request& r, int n);
  void flow(const Request& r, int n);
  bool is_summed_in_shards(const Request& r, TensorId id) const;
  void propose(const Request& r, TensorId id, const DimAxes& axes);

  std::map<int, DimAxes> axes_;
  std::map<TensorId, Sharding> wants_;
  std::map<int, DimAxes> updates_;  // variable node -> the axes it is updated in, where they are not the layout's
  std::set<int> held_;              // variable nodes
  std::set<TensorId> sums_;         // of loops, that are made in shards
  std::set<TensorId> elsewhere_;    // what ops outside the update use
};

// Whether a node works on what the update wants: ops of the update, and assignments wherever they were written.
bool is_update(const Node& node);

}  // namespace weft
