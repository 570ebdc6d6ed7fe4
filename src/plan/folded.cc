#include "plan/folded.h"

#include <algorithm>
#include <cmath>

#include "base/str.h"
#include "program/memory_plan.h"
#include "program/pipeline.h"

namespace weft {

namespace {

std::vector<TensorId> ids_of(const Tensors& tensors) {
  std::vector<TensorId> ids;
  for (const Tensor& x : tensors) ids.push_back(x.id());
  return ids;
}

// The sum of weight * value over the parts, for each number of a prediction.
class WeightedSum {
 public:
  void add(double weight, const Prediction& p) {
    compute_ += weight * p.compute;
    wire_ += weight * p.wire;
    exposed_ += weight * p.exposed;
    rest_ += weight * (p.seconds - p.compute - p.exposed);
    flops_ += weight * p.flops;
    variables_ += weight * static_cast<double>(p.variable_bytes);
    arena_ += weight * static_cast<double>(p.arena_bytes);
  }
  // A layer more may hide what a layer less must wait for; nobody waits less than not at all.
  Prediction result() const {
    Prediction sum{.compute = compute_, .wire = wire_, .exposed = std::max(0.0, exposed_), .flops = flops_};
    sum.seconds = sum.compute + sum.exposed + rest_;
    sum.variable_bytes = std::llround(variables_);
    sum.arena_bytes = std::llround(arena_);
    return sum;
  }

 private:
  double compute_ = 0, wire_ = 0, exposed_ = 0, rest_ = 0, flops_ = 0, variables_ = 0, arena_ = 0;
};

}  // namespace

std::vector<TensorId> WantedGraph::wanted() const {
  std::vector<TensorId> all = fetch;
  all.insert(all.end(), update.begin(), update.end());
  if (metrics) all.insert(all.end(), data().metrics.begin(), data().metrics.end());
  return all;
}

WantedGraph wanted_graph(const StepGraph& step) {
  return {step.graph, ids_of(step.fetch), ids_of(step.update), step.metrics, step.compute_as};
}

std::shared_ptr<const FoldedGraphs::Parts> FoldedGraphs::parts(std::int64_t microbatches, bool recompute) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Parts>& found = parts_[{microbatches, recompute}];
  if (found) return found;
  const auto made = [&](const std::vector<std::int64_t>& layers) {
    return std::make_shared<const WantedGraph>(wanted_graph(family_.build(layers, microbatches, recompute)));
  };
  auto parts = std::make_shared<Parts>();
  const std::vector<std::int64_t> one(family_.layers.size(), 1);
  parts->push_back({made(one), 1});
  for (std::size_t kind = 0; kind < one.size(); ++kind) {
    const auto more = static_cast<double>(family_.layers[kind] - 1);
    if (more == 0) continue;
    std::vector<std::int64_t> layers = one;
    ++layers[kind];
    parts->push_back({made(layers), more});
    parts->front().weight -= more;
  }
  return found = std::move(parts);
}

std::shared_ptr<const WantedGraph> FoldedGraphs::whole(std::int64_t microbatches, bool recompute) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const WantedGraph>& found = whole_[{microbatches, recompute}];
  if (!found)
    found = std::make_shared<const WantedGraph>(wanted_graph(family_.build(family_.layers, microbatches, recompute)));
  return found;
}

std::string FoldedGraphs::text() const {
  if (family_.layers.empty()) return "the whole graph, because its layers are not known";
  std::vector<std::string> counts;
  for (const std::int64_t n : family_.layers) counts.push_back(str(n));
  return str("one and two layers of each kind, for ", join(counts, " + "), " layers");
}

Program compiled_for(const WantedGraph& graph, const PlanChoice& choice, const Target& target,
                     std::int64_t arena_limit) {
  Program program = partition({.graph = &graph.data(),
                               .fetch = graph.fetch,
                               .update = graph.update,
                               .metrics = graph.metrics,
                               .mesh = choice.mesh,
                               .layout = choice.layout,
                               .store = choice.store,
                               .compute_as = graph.compute_as});
  return run_passes(std::move(program), {.arena_limit = arena_limit, .target = target});
}

Prediction Predictor::of(const WantedGraph& graph, const PlanChoice& choice, std::int64_t arena_limit) const {
  const Program program = compiled_for(graph, choice, target_, arena_limit);
  const StepCost cost = Pricer(machine_, choice.mesh).price(program);
  return {.seconds = cost.seconds,
          .compute = cost.compute,
          .wire = cost.wire,
          .exposed = cost.exposed,
          .flops = cost.flops,
          .variable_bytes = variable_bytes(program),
          .arena_bytes = plan_memory(program, target_).arena_bytes};
}

Prediction Predictor::folded(const PlanChoice& choice, std::int64_t memory_limit) const {
  const auto parts = graphs_.parts(choice.microbatches, choice.recompute == Recompute::kLayers);
  const auto sum = [&](double share) {
    WeightedSum all;
    for (const FoldedGraphs::Part& part : *parts) {
      Prediction p = of(*part.graph, choice, 0);
      if (const auto limit = static_cast<std::int64_t>(share * static_cast<double>(p.arena_bytes)); share < 1)
        p = of(*part.graph, choice, std::max<std::int64_t>(1, limit));
      all.add(part.weight, p);
    }
    return all.result();
  };
  const Prediction free = sum(1);
  if (choice.recompute != Recompute::kCompiler || memory_limit == 0 || free.bytes() <= memory_limit) return free;
  // Each program gets the same share of its arena that the limit leaves of the extrapolated one.
  const auto left = static_cast<double>(memory_limit - free.variable_bytes);
  return sum(std::max(0.0, left / static_cast<double>(free.arena_bytes)));
}

Prediction Predictor::whole(const PlanChoice& choice, std::int64_t memory_limit) const {
  const auto whole = graphs_.whole(choice.microbatches, choice.recompute == Recompute::kLayers);
  const WantedGraph& graph = *whole;
  const Prediction free = of(graph, choice, 0);
  if (choice.recompute != Recompute::kCompiler || memory_limit == 0 || free.bytes() <= memory_limit) return free;
  return of(graph, choice, std::max<std::int64_t>(1, memory_limit - free.variable_bytes));
}

}  // namespace weft
