// The model of the search: what a choice costs, from programs with few layers that the real partitioner and passes make.
//
// With one layer of each kind the step costs p; with one more layer of kind k it costs p + d_k. A step with n_k layers
// costs p + sum of (n_k - 1) d_k: seconds of computation and of waiting, and bytes, each by itself.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "partition/partition.h"
#include "plan/cost.h"
#include "program/target.h"
#include "weft/plan.h"

namespace weft {

// A graph as the partitioner takes it.
struct WantedGraph {
  Graph graph;
  std::vector<TensorId> fetch, update;
  bool metrics = false;
  std::optional<DType> compute_as;

  const GraphData& data() const { return *graph.data(); }
  std::vector<TensorId> wanted() const;  // all tensors that the program computes
};
WantedGraph wanted_graph(const StepGraph& step);

// The graphs of a family that are compiled for a candidate, with their weights in the sum above. Thread-safe.
class FoldedGraphs {
 public:
  explicit FoldedGraphs(const StepFamily& family) : family_(family) {}

  struct Part {
    std::shared_ptr<const WantedGraph> graph;
    double weight = 1;
  };
  using Parts = std::vector<Part>;
  std::shared_ptr<const Parts> parts(std::int64_t microbatches, bool recompute);
  std::shared_ptr<const WantedGraph> whole(std::int64_t microbatches, bool recompute);

  const StepFamily& family() const { return family_; }
  std::string text() const;  // what is compiled for a candidate, for people

 private:
  const StepFamily& family_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const Parts>> parts_;
  std::map<std::pair<std::int64_t, bool>, std::shared_ptr<const WantedGraph>> whole_;
};

// The program of one graph under a choice. arena_limit 0: none. UserError if the choice cannot work.
Program compiled_for(const WantedGraph& graph, const PlanChoice& choice, const Target& target,
                     std::int64_t arena_limit = 0);

// Predictions. Thread-safe.
class Predictor {
 public:
  Predictor(FoldedGraphs& graphs, const Machine& machine, const Target& target)
      : graphs_(graphs), machine_(machine), target_(target) {}

  // Of programs with few layers, compiled on the choice's own mesh. `memory_limit` is for Recompute::kCompiler alone. UserError if the choice cannot work.
  Prediction folded(const PlanChoice& choice, std::int64_t memory_limit) const;
  // Of the whole program.
  Prediction whole(const PlanChoice& choice, std::int64_t memory_limit) const;

 private:
  Prediction of(const WantedGraph& graph, const PlanChoice& choice, std::int64_t arena_limit) const;

  FoldedGraphs& graphs_;
  const Machine& machine_;
  const Target& target_;
};

}  // namespace weft
