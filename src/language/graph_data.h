// The data of a Graph: an append-only list of nodes in program order.
#pragma once

#include <any>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/index.h"
#include "base/phase.h"
#include "weft/error.h"
#include "weft/graph.h"

namespace weft {

struct OpDef;

struct TensorType {
  Shape shape;
  DType dtype = DType::kF32;
  bool operator==(const TensorType&) const = default;
};

// Named parameters of an op: `attrs.get<Dim>("dim")`.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, std::any>> items) : items_(items) {}
  bool has(const std::string& name) const { return items_.contains(name); }
  template <class T>
  const T& get(const std::string& name) const {
    const auto found = items_.find(name);
    const T* value = found == items_.end() ? nullptr : std::any_cast<T>(&found->second);
    if (!value) throw InternalError("an op asks for an attribute '" + name + "' that it was not given");
    return *value;
  }

 private:
  std::map<std::string, std::any> items_;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<TensorId> inputs = {};
  Attrs attrs = {};
  std::vector<TensorType> outputs = {};
  Site site = Site::current();
  std::string name = {};       // for messages; named() may set it
  std::string full_name = {};  // scopes + op; with `ordinal` it keys random numbers
  int ordinal = 0;
  Phase phase = Phase::kForward;
  int loop = -1;      // the loop whose body contains it; -1: none. Variables and inputs are in none.
  int recompute = 0;  // the number of the recomputation that made it; 0: none
};

// The body of a loop: the nodes whose `loop` is its number.
struct LoopData {
  int around = -1;     // the loop whose body contains it
  TensorId iteration;  // i64 scalar, counted over this loop and the loops around it
  Dim batch = {};      // of a microbatch: the undivided dim along which its inputs are cut
};

struct GraphData {
  Indexed<NodeId, Node, std::deque<Node>> nodes;
  std::vector<std::string> scopes;
  Phase phase = Phase::kForward;
  std::deque<LoopData> loops;
  int loop = -1;                        // the loop whose body is being built
  int recompute = 0;                    // the recomputation that is being built
  int recomputes = 0;                   // how many there are
  const Site* cause = nullptr;          // if set, new ops get this line as their site
  bool own_dims = false;                // new ops may add dims with reserved names
  std::map<std::string, int> ordinals;  // full name -> how many so far
  std::map<std::string, NodeId> inputs;
  std::vector<TensorId> variables;  // as user code sees them, in order of declaration
  std::map<std::string, NodeId> variable_nodes;
  std::vector<TensorId> metrics;  // of ops that report a scalar to the host

  const Node& node(TensorId id) const { return nodes[id.node]; }
  const TensorType& type(TensorId id) const { return node(id).outputs[static_cast<std::size_t>(id.output)]; }
  std::string scoped(const std::string& name) const;
  // Whether nodes in the body of loop `inner` (-1: in none) can read nodes in the body of `outer`.
  bool sees(int inner, int outer) const {
    while (inner != outer && inner >= 0) inner = loops[static_cast<std::size_t>(inner)].around;
    return inner == outer;
  }
};

// Ops that are made during its lifetime get this line as their site: a gradient has the line of its op.
class CauseGuard {
 public:
  CauseGuard(GraphData& graph, const Site& site) : graph_(graph), before_(graph.cause), site_(site) {
    graph.cause = &site_;
  }
  ~CauseGuard() { graph_.cause = before_; }
  CauseGuard(const CauseGuard&) = delete;
  CauseGuard& operator=(const CauseGuard&) = delete;

 private:
  GraphData& graph_;
  const Site* before_;
  Site site_;
};

// Ops that are made during its lifetime may add dims with reserved names. A nested guard can forbid it again.
class OwnDimsGuard {
 public:
  explicit OwnDimsGuard(const std::shared_ptr<GraphData>& graph, bool allowed = true) : graph_(graph) {
    if (!graph) return;
    before_ = graph->own_dims;
    graph->own_dims = allowed;
  }
  ~OwnDimsGuard() {
    if (graph_) graph_->own_dims = before_;
  }
  OwnDimsGuard(const OwnDimsGuard&) = delete;
  OwnDimsGuard& operator=(const OwnDimsGuard&) = delete;

 private:
  std::shared_ptr<GraphData> graph_;  // the graph of a tensor; the tensor may be empty
  bool before_ = false;
};

// Ops that are made during its lifetime get this phase.
class PhaseGuard {
 public:
  PhaseGuard(GraphData& graph, Phase phase) : graph_(graph), before_(graph.phase) { graph.phase = phase; }
  ~PhaseGuard() { graph_.phase = before_; }
  PhaseGuard(const PhaseGuard&) = delete;
  PhaseGuard& operator=(const PhaseGuard&) = delete;

 private:
  GraphData& graph_;
  Phase before_;
};

}  // namespace weft
