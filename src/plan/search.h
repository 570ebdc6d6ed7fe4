// The search: best first, branch and bound. Exact over the model of plan/folded.h.
//
// A node of the tree is a mesh with the roles of its first axes, then a whole layout, then a layout with microbatches and
// recomputation, then a candidate with its storage layout. Every node has a bound that no candidate below it beats. The
// node with the least bound is opened next. A layout is compiled and priced without a storage layout, microbatches or
// recomputation: its floor (plan/folded.h) is a better bound for its candidates. A candidate is compiled and priced
// when it is reached. The search ends when no bound is below the best price.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plan/bound.h"
#include "plan/choice.h"
#include "plan/folded.h"
#include "plan/workers.h"

namespace weft {

struct MeshShape {
  std::vector<int> sizes;
  std::vector<std::string> names;  // "" or missing: free
};

// A dim that is split over the axes of these names and no others.
struct PinnedDim {
  std::size_t dim = 0;
  std::vector<std::string> axes;
};

// What candidates must respect.
struct Demands {
  std::vector<MeshShape> meshes;
  bool order_matters = true;      // of axes; if not, meshes that differ in the order of axes are the same
  bool merges_equal_axes = true;  // axes that split and store the same are one axis of another mesh of the list
  DimSet allowed = 0;             // dims that may be split
  std::vector<PinnedDim> pinned;
  bool allow_store = true;
  std::int64_t memory_bytes = 0;  // 0: no limit
  Objective objective = Objective::kTime;
};

struct Priced {
  Choice choice;
  PlanChoice named;  // with its prediction
  double value = 0;  // of the objective: seconds or bytes
  double floor = 0;  // FoldedPrediction::floor
};

struct Found {
  std::vector<Priced> best;    // candidates that meet all demands, the best first
  std::vector<Priced> priced;  // all that were compiled, whether they fit or not
  double bound = 0;            // of the objective
  std::int64_t bounded = 0;    // nodes with a bound
  bool stopped = false;
  std::vector<std::string> failures;  // candidates on which the compiler broke a rule of its own
};

// Everything that a search reads. Prices are kept, so that a second search with other demands reuses them.
class Search {
 public:
  struct Facts {
    const SplitRules& rules;
    FoldedGraphs& graphs;
    const Predictor& predictor;
    const WorkBound& bound;       // without recomputation
    const WorkBound* recomputed;  // of every layer; null: not to be chosen
    const Machine& machine;
  };
  explicit Search(const Facts& facts) : facts_(facts) {}

  // Keeps the best `keep` candidates. `stop` is asked before every compilation.
  Found run(const Demands& demands, std::size_t keep, const std::function<bool()>& stop);

  // The price of one choice, from memory if it was priced before; empty: the partitioner refuses it.
  std::optional<Priced> price(const Choice& choice, const Demands& demands);

 private:
  struct Node;
  struct Queue;
  void open(const Node& node, const Demands& demands, Queue& queue);
  void add_layout(const Node& node, const Demands& demands, Queue& queue);
  void add_variants(const Node& node, double floor, const Demands& demands, Queue& queue);
  void add_stores(const Node& node, const Demands& demands, Queue& queue);
  const MeshGroups& groups(const std::vector<int>& sizes);
  double bound_of(const Choice& choice, bool ignores_update);
  std::vector<std::optional<Priced>> price_all(const std::vector<Node>& nodes, const Demands& demands);

  Facts facts_;
  std::map<std::vector<int>, MeshGroups> groups_;
  std::mutex mutex_;
  std::map<std::string, std::optional<FoldedPrediction>> prices_;
  std::vector<std::string> failures_;
  Workers workers_{std::max(1U, std::thread::hardware_concurrency())};
};

// Whether the objective's limit of memory is respected.
bool fits(const Prediction& prediction, const Demands& demands);

}  // namespace weft
