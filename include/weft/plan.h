// plan: the mesh, layout, storage layout, microbatches and recomputation with which a step is predicted to be fastest on
// a machine, found by an exact search. docs/planner.md says what is searched and how to read a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph.h"
#include "weft/machine.h"
#include "weft/mesh.h"

namespace weft {

// A step as a graph; the other fields are those of CompileOptions.
struct StepGraph {
  Graph graph;
  Tensors fetch = {}, update = {};
  bool metrics = false;
  std::optional<DType> compute_as = {};
};

// The graphs of one step that differ in what the search may choose inside a graph. Candidates are compiled with few
// layers, and their costs are extrapolated: the cost of each further layer of a kind is the same.
struct StepFamily {
  std::vector<std::int64_t> layers;              // the number of layers of each kind; empty: the graph has no layers
  std::vector<std::int64_t> microbatches = {1};  // the numbers that may be chosen, ascending, 1 first
  bool can_recompute = false;                    // whether `build` can recompute each layer in the backward pass
  std::string batch = "batch";                   // the dim that microbatches divide
  std::function<StepGraph(const std::vector<std::int64_t>& layers, std::int64_t microbatches, bool recompute)> build;
};

enum class Recompute : std::uint8_t {
  kNone,
  kLayers,   // every layer is computed again in the backward pass
  kCompiler  // CompileOptions::memory_bytes: the compiler repeats the work that saves the most memory
};

enum class Objective : std::uint8_t { kTime, kMemory };

// What the plan must respect. UserError for unknown dims or axes, and if no candidate meets all demands.
struct PlanOptions {
  Objective objective = Objective::kTime;
  std::int64_t memory_bytes = 0;    // of each processor; 0: what the machine has
  std::optional<Mesh> mesh = {};    // the only mesh; default: all meshes of up to three axes
  std::string fix = {};             // rules of a layout that must hold, "batch:data heads:-"
  std::vector<std::string> allow;   // the only dims that may be split; empty: all
  std::vector<std::string> forbid;  // dims that must not be split
  bool allow_store = true;          // whether variables may be stored in smaller shards than the layout's
  double seconds = 0;               // for the search; 0: until the optimum is proved
  std::function<bool()> stop = {};  // asked now and then; true ends the search with the best so far
  int most_axes = 3;
  std::string device = "cpu", plugin = {};  // the engine that programs are compiled for: see device::Choice
  bool nondeterministic = false;            // likewise
};

// What a step takes on each processor, predicted.
struct Prediction {
  double seconds = 0;
  double compute = 0, wire = 0, exposed = 0;  // seconds in which it computes, its collectives run, it waits for them
  double flops = 0;                           // executed
  std::int64_t variable_bytes = 0, arena_bytes = 0;

  std::int64_t bytes() const { return variable_bytes + arena_bytes; }
};

// Session::compile takes its parts as they are.
struct PlanChoice {
  Mesh mesh;
  Layout layout;
  Store store;
  std::int64_t microbatches = 1;
  Recompute recompute = Recompute::kNone;
  Prediction predicted = {};
  bool is_whole = false;  // predicted on the whole program; otherwise extrapolated from few layers

  std::string text() const;  // "mesh … layout … store … microbatches … recompute …"
};

// Why a rule of the layout, or the storage layout, is there: the best that the same choice gives without it.
struct PlanReason {
  std::string rule;                   // "d_ff:model", "store *:data level 3"
  std::optional<Prediction> without;  // without the rule, everything else the same; empty: no program exists
  std::string refusal = {};           // why no program exists
};

struct Plan : PlanChoice {
  double bound = 0;                       // no candidate of the model is faster (objective memory: smaller, in bytes)
  double gap = 0;                         // (predicted by the model - bound) / predicted; 0: proved
  std::vector<PlanChoice> best = {};      // the best by the model, compiled in full, the chosen one first
  std::vector<PlanChoice> frontier = {};  // ascending in time, descending in memory
  std::vector<PlanReason> reasons = {};
  std::int64_t memory_limit = 0;       // bytes; 0: none
  std::vector<std::string> dims = {};  // that may be split
  std::string folding = {};            // what was compiled for a candidate: few layers, or the whole graph
  // Meshes, candidates and parts of candidates with a bound, candidates with a price, programs that were compiled for it.
  std::int64_t meshes = 0, bounded = 0, priced = 0, compiled = 0;
  bool stopped = false;  // by `seconds` or `stop`, before the optimum was proved
  double search_seconds = 0;
  std::vector<std::string> failures = {};  // candidates that are left out because the compiler failed: a bug of Weft

  std::string summary() const;  // for people
  std::string json() const;     // docs/planner.md lists the keys
};

// UserError: the machine has too few processors, a demand names what the graph lacks, no candidate fits.
Plan plan(const StepFamily& family, const Machine& machine, int processors, const PlanOptions& options = {});
Plan plan(const StepGraph& step, const Machine& machine, int processors, const PlanOptions& options = {});

// The prediction for one choice, by the model of the search: to rank a layout of one's own. UserError if it cannot work.
Prediction predict(const StepFamily& family, const Machine& machine, const PlanChoice& choice,
                   const PlanOptions& options = {});

}  // namespace weft
