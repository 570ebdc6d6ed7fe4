// The search: best first, branch and bound. Exact over the model of plan/patterns.h.
//
// A node of the tree is a mesh with the roles of its first axes, then a whole layout, then a candidate. Every node has a
// bound that no candidate below it beats. The node with the least bound is opened next. The search ends when no bound is
// below the best price.
//
// Bounds of a candidate, beside those of plan/bound.h:
// - Its layout is priced without a storage layout. The work outside of the update and what the forward and backward
//   passes wait for (Price::floor) remain under every storage layout.
// - More microbatches, or repeated work, take no less time than one batch without repetition. So they are tried only for
//   candidates that do not fit in memory. Where halves may take less
//   time than the whole (the machine has a table of sweeps, or products of more rows are slower) this is not assumed.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "plan/bound.h"
#include "plan/choice.h"
#include "plan/folded.h"
#include "plan/patterns.h"
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
  Prediction predicted;
  double value = 0;  // of the objective: seconds or bytes
};

struct Found {
  std::vector<Priced>
      best;  // candidates that meet all demands, the best first; then the best of the menu that are not among them
  std::vector<Priced> priced;  // all that were priced, whether they fit or not
  double bound = 0;            // of the objective
  std::int64_t bounded = 0;    // nodes with a bound
  std::int64_t compiled = 0;   // programs
  bool stopped = false;
  std::vector<std::string> failures;  // candidates on which the compiler broke a rule of its own
};

// Everything that a search reads. Programs are kept, so that a second search with other demands reuses them.
class Search {
 public:
  struct Facts {
    const SplitRules& rules;
    FoldedGraphs& graphs;
    const Predictor& predictor;
    const WorkBound& bound;  // without recomputation
    const Machine& machine;
    const Target& target;
  };
  explicit Search(const Facts& facts);

  // Keeps the best `keep` candidates. `stop` is asked before every step.
  Found run(const Demands& demands, std::size_t keep, const std::function<bool()>& stop);

  // The price of one choice; empty: the partitioner refuses it.
  std::optional<Priced> price(const Choice& choice, const Demands& demands);
  // With its names and its price.
  PlanChoice named(const Priced& priced) const;

  Workers& workers() { return workers_; }

 private:
  struct Node;
  class Run;
  double bound_of(const Choice& choice, bool ignores_update);

  Facts facts_;
  Patterns patterns_;
  std::mutex mutex_;
  std::map<std::string, std::optional<Prediction>> recomputed_;  // prices of Recompute::kCompiler
  std::vector<std::string> failures_;
  Workers workers_{std::max(1U, std::thread::hardware_concurrency())};
};

// Whether the objective's limit of memory is respected.
bool fits(const Prediction& prediction, const Demands& demands);

}  // namespace weft
