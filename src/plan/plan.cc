#include "weft/plan.h"

#include <algorithm>
#include <chrono>

#include "base/str.h"
#include "plan/demands.h"
#include "plan/repeated_layers.h"
#include "plan/search.h"
#include "weft/detail/target.h"

namespace weft {

namespace {

constexpr std::size_t kCompiledInFull = 5;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// All that searches of one family on one machine share.
class Planner {
 public:
  Planner(const StepFamily& family, const Machine& machine, int processors, const PlanOptions& options)
      : options_(options),
        processors_(processors),
        machine_(machine),
        target_(engine_target(options.device, options.plugin, options.nondeterministic)),
        graphs_(family),
        predictor_(graphs_, machine, target_),
        parts_(graphs_.parts(1, false)),
        rules_(parts_->front().graph->data(), parts_->front().graph->wanted()),
        bound_(*parts_, rules_, family.batch, machine, processors, target_) {}

  Plan run() {
    const auto begin = std::chrono::steady_clock::now();
    const auto stop = [&] {
      return (options_.seconds > 0 && seconds_since(begin) > options_.seconds) || (options_.stop && options_.stop());
    };
    const Demands demands = demands_of({options_, rules_, machine_, processors_});
    Search search({rules_, graphs_, predictor_, bound_, machine_, target_});
    const Found found = search.run(demands, kCompiledInFull, stop);
    if (found.best.empty() && found.stopped)
      throw nothing_found_yet({options_, rules_, machine_, processors_}, demands, seconds_since(begin));
    if (found.best.empty()) throw nothing_fits({options_, rules_, machine_, processors_}, demands, found, search);
    Plan plan;
    plan.best = compiled_in_full(found, search, demands);
    static_cast<PlanChoice&>(plan) = plan.best.front();
    plan.bound = found.bound;
    plan.gap = 1 - found.bound / found.best.front().value;
    plan.stopped = found.stopped;
    plan.failures = found.failures;
    plan.frontier = frontier_of(found, search);
    plan.search_seconds = seconds_since(begin);
    plan.reasons = reasons_of(chosen(found, plan, search), search, demands);
    plan.memory_limit = demands.memory_bytes;
    plan.dims = rules_.names(demands.allowed);
    plan.folding = graphs_.text();
    plan.meshes = static_cast<std::int64_t>(demands.meshes.size());
    plan.bounded = found.bounded;
    plan.priced = static_cast<std::int64_t>(found.priced.size());
    plan.compiled = found.compiled;
    return plan;
  }

 private:
  // The whole programs decide among the best of the model.
  std::vector<PlanChoice> compiled_in_full(const Found& found, Search& search, const Demands& demands) const {
    std::vector<PlanChoice> all;
    for (const Priced& priced : found.best) all.push_back(search.named(priced));
    search.workers().run(all.size(), [&](std::size_t i) {
      all[i].predicted = predictor_.whole(all[i], demands.memory_bytes);
      all[i].is_whole = true;
    });
    const auto key = [&](const PlanChoice& choice) {
      const Prediction& p = choice.predicted;
      return std::pair(!fits(p, demands),
                       demands.objective == Objective::kTime ? p.seconds : static_cast<double>(p.bytes()));
    };
    std::ranges::stable_sort(all, {}, key);
    return all;
  }

  static const Priced& chosen(const Found& found, const Plan& plan, const Search& search) {
    return *std::ranges::find_if(found.best, [&](const Priced& p) { return search.named(p).text() == plan.text(); });
  }

  // Of all candidates that were priced: those that no other one beats in both time and memory, if they need visibly less
  // memory than a faster one.
  static std::vector<PlanChoice> frontier_of(const Found& found, const Search& search) {
    std::vector<const Priced*> all;
    for (const Priced& priced : found.priced) all.push_back(&priced);
    const auto key = [](const Priced* p) { return std::pair(p->predicted.seconds, p->predicted.bytes()); };
    std::ranges::stable_sort(all, {}, key);
    constexpr double kVisible = 0.995;
    std::vector<PlanChoice> frontier;
    for (const Priced* priced : all)
      if (frontier.empty() || static_cast<double>(priced->predicted.bytes()) <
                                  kVisible * static_cast<double>(frontier.back().predicted.bytes()))
        frontier.push_back(search.named(*priced));
    return frontier;
  }

  PlanReason without(std::string rule, const Choice& choice, Search& search, const Demands& demands) const {
    PlanReason reason{.rule = std::move(rule), .without = {}};
    if (const std::optional<Priced> priced = search.price(choice, demands)) reason.without = priced->predicted;
    else reason.refusal = "no program exists without it";
    return reason;
  }

  std::vector<PlanReason> reasons_of(const Priced& best, Search& search, const Demands& demands) const {
    std::vector<PlanReason> reasons;
    const PlanChoice best_named = search.named(best);
    for (const LayoutRule& rule : best_named.layout.rules()) {
      Choice choice = best.choice;
      const DimSet dim = DimSet{1} << rules_.find(rule.dim);
      for (AxisRole& axis : choice.axes) axis.dims &= ~dim;
      reasons.push_back(without(str(rule.dim, ":", join(rule.axes, "+")), choice, search, demands));
    }
    if (best.choice.level > 0) {
      Choice choice = best.choice;
      choice.level = 0;
      choice.stored = 0;
      reasons.push_back(
          without(str("store ", best_named.store.text(), " level ", best.choice.level), choice, search, demands));
    }
    if (best.choice.microbatches > 1) {
      Choice choice = best.choice;
      choice.microbatches = 1;
      reasons.push_back(without(str(best.choice.microbatches, " microbatches"), choice, search, demands));
    }
    if (best.choice.recompute != Recompute::kNone) {
      Choice choice = best.choice;
      choice.recompute = Recompute::kNone;
      reasons.push_back(without("recomputation", choice, search, demands));
    }
    return reasons;
  }

  const PlanOptions& options_;
  int processors_;
  const Machine& machine_;
  const Target& target_;
  FoldedGraphs graphs_;
  Predictor predictor_;
  std::shared_ptr<const FoldedGraphs::Parts> parts_;
  SplitRules rules_;
  WorkBound bound_;
};

}  // namespace

Plan plan(const StepFamily& family, const Machine& machine, int processors, const PlanOptions& options) {
  check_processors(machine, processors, options.mesh);
  return Planner(family, machine, processors, options).run();
}

Plan plan(const StepGraph& step, const Machine& machine, int processors, const PlanOptions& options) {
  // The search knows families by their number of layers from one on; the graph is cut to three layers or more.
  const std::optional<RepeatedLayers> layers = RepeatedLayers::find(step);
  StepFamily family;
  if (layers) family.layers = {layers->count() - RepeatedLayers::kFewest + 1};
  family.build = [&](const std::vector<std::int64_t>& count, std::int64_t, bool) {
    return layers ? layers->with(count[0] - 1 + RepeatedLayers::kFewest) : step;
  };
  Plan made = plan(family, machine, processors, options);
  if (layers) made.folding = str("three and four of the ", layers->count(), " layers that repeat in the graph");
  else made.folding = "the whole graph, because no layers that repeat were found in it";
  return made;
}

Prediction predict(const StepFamily& family, const Machine& machine, const PlanChoice& choice,
                   const PlanOptions& options) {
  FoldedGraphs graphs(family);
  return Predictor(graphs, machine, engine_target(options.device, options.plugin, options.nondeterministic))
      .folded(choice, options.memory_bytes);
}

}  // namespace weft
