// The repeated layers of a graph that was built without saying what its layers are.
//
// Nodes are alike if they have the same op, types and user's line. Runs of nodes that repeat a block of alike nodes are
// the layers: one run of the forward pass, one of the backward pass, some of the update. Every block reads from its own
// layer, from layers a fixed distance away, or from nodes that all layers read. Whole layers are then cut out: what read
// from a layer that is cut reads from the layer at the same distance. Graphs with loops have no such layers here.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "weft/plan.h"

namespace weft {

class RepeatedLayers {
 public:
  // Empty: no layers repeat often enough, or some node reads of each layer by itself.
  static std::optional<RepeatedLayers> find(const StepGraph& step);

  std::int64_t count() const { return count_; }
  // The step with `count` layers, from kFewest to count().
  static constexpr std::int64_t kFewest = 3;
  StepGraph with(std::int64_t count) const;

 private:
  // A run of blocks. Block b has the nodes from begin + b * period on, and is of layer sign * b + offset.
  struct Run {
    std::size_t begin = 0, period = 0;
    std::int64_t sign = 1, offset = 0;
    bool is_aligned = false;
  };
  // Where a node is in a run.
  struct Place {
    int run = -1;  // -1: in none
    std::int64_t block = 0;
    std::size_t slot = 0;
  };

  explicit RepeatedLayers(const StepGraph& step);
  void find_runs();
  bool align_runs();
  bool align(Run& from, const Run& to, const std::vector<std::pair<std::int64_t, std::int64_t>>& blocks) const;
  bool is_regular() const;
  std::int64_t layer(const Place& place) const;
  std::size_t node_at(const Place& place, std::int64_t layer) const;
  bool is_fixed(std::size_t reader, std::size_t input) const;
  bool is_kept(std::size_t node, std::int64_t cut) const;
  std::optional<std::size_t> source(std::size_t reader, std::size_t input, std::int64_t cut) const;
  std::optional<StepGraph> without(std::int64_t cut) const;

  StepGraph step_;
  std::int64_t count_ = 0;
  std::vector<int> ids_;                        // by node that is needed: its number in the graph
  std::vector<int> labels_;                     // equal for alike nodes
  std::vector<std::vector<std::size_t>> from_;  // the nodes that it reads
  std::vector<Run> runs_;
  std::vector<Place> places_;
};

}  // namespace weft
