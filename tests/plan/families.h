// Small graphs and machines for tests of the planner, and what a search of one of them needs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/demands.h"
#include "plan/search.h"
#include "weft/detail/target.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::search_test {

// Eight processors that are joined alike.
inline constexpr const char* kFlat = R"(
processors = 8
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-6
pointwise = 1e10
random = 1e8
[[link]]
name = "box"
topology = "switch"
sides = [8]
latency = 1e-6
bandwidth = 1e9
)";

// Pairs of processors, joined by a slower network.
inline constexpr const char* kLevels = R"(
processors = 8
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-7
pointwise = 1e10
random = 1e8
[[link]]
name = "pair"
topology = "switch"
sides = [2]
latency = 1e-7
bandwidth = 2e10
[[link]]
name = "net"
topology = "switch"
sides = [4]
latency = 1e-5
bandwidth = 2e8
)";

// Products that are padded to tiles, and caches: the rates of a sweep depend on what was touched before. Processors move
// the bytes of collectives themselves, and are not equally fast.
inline constexpr const char* kCaches = R"(
processors = 8
overlap = false
skew = 0.05
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-7
pointwise = 1e10
random = 1e8
[rates.sweep]
bytes = [1e4, 1e6]
rate = [4e10, 1e10]
[[rates.product]]
dtype = "f32"
m = [8, 64]
n = [8, 64]
k = [8, 64]
rate = [1e10, 2e10, 2e10, 4e10, 2e10, 4e10, 4e10, 8e10]
tile = [4, 8, 8]
[[link]]
name = "ring"
topology = "ring"
sides = [8]
latency = 1e-6
bandwidth = 1e9
)";

struct Sizes {
  std::int64_t batch, io, hidden;
};

inline StepGraph trained(const Graph& g, const Tensor& loss, const std::string& optimizer) {
  return {g, {loss}, optim::make_optimizer({.name = optimizer}, loss, g.variables())->updates(), false, {}};
}

// relu(x w) v, with a step of momentum; layers of equal shapes.
inline StepFamily perceptron(const Sizes& sizes, std::int64_t layers, std::vector<std::int64_t> microbatches = {1},
                             bool can_recompute = false) {
  StepFamily family;
  family.layers = {layers};
  family.microbatches = std::move(microbatches);
  family.can_recompute = can_recompute;
  family.build = [sizes](const std::vector<std::int64_t>& count, std::int64_t parts, bool repeats) {
    const Dim batch{"batch", sizes.batch}, io{"io", sizes.io}, hidden{"hidden", sizes.hidden};
    Graph g;
    const Tensor x = g.input("x", {batch, io});
    Tensors w, v;
    for (std::int64_t i = 0; i < count[0]; ++i) {
      w.push_back(g.variable("w" + std::to_string(i), {io, hidden}, init::zeros()));
      v.push_back(g.variable("v" + std::to_string(i), {hidden, io}, init::zeros()));
    }
    const auto loss_of = [&](Tensor y) {
      const Dim rows{"batch", y.shape().size_of("batch")};
      for (std::size_t i = 0; i < w.size(); ++i) {
        const auto layer = [&] { return Tensors{einsum({relu(einsum({y, w[i]}, {rows, hidden})), v[i]}, {rows, io})}; };
        y = y + (repeats ? recompute(g, layer) : layer())[0];
      }
      return mean(y * y);
    };
    const Tensor loss = parts == 1
                            ? loss_of(x)
                            : microbatch_loss({x}, batch, parts, [&](const Tensors& part) { return loss_of(part[0]); });
    return trained(g, loss, "momentum");
  };
  return family;
}

// Products of bf16 copies of f32 weights, of few rows: casts of weights are a large part of the work.
inline StepFamily rounded() {
  StepFamily family;
  family.layers = {2};
  family.build = [](const std::vector<std::int64_t>& count, std::int64_t, bool) {
    const Dim batch{"batch", 8}, io{"io", 32}, hidden{"hidden", 256};
    Graph g;
    Tensor y = cast(g.input("x", {batch, io}), DType::kBF16);
    for (std::int64_t i = 0; i < count[0]; ++i) {
      const auto weight = [&](const std::string& name, const Dim& from, const Dim& to) {
        return g.variable(name + std::to_string(i), {from, to}, init::zeros(), {.activation = DType::kBF16});
      };
      const Tensor h = relu(einsum({y, weight("w", io, hidden)}, {batch, hidden}));
      y = y + einsum({h, weight("v", hidden, io)}, {batch, io});
    }
    return trained(g, mean(cast(y * y, DType::kF32)), "sgd");
  };
  return family;
}

// Layers of attention, with Adam.
inline StepFamily attention(std::int64_t layers) {
  StepFamily family;
  family.layers = {layers};
  family.build = [](const std::vector<std::int64_t>& count, std::int64_t, bool) {
    const Dim batch{"batch", 8}, length{"length", 8}, model{"model", 16}, heads{"heads", 4}, d_kv{"d_kv", 8};
    Graph g;
    Tensor x = g.input("x", {batch, length, model});
    for (std::int64_t i = 0; i < count[0]; ++i) {
      const auto scope = g.scope("layer" + std::to_string(i));
      x = x + nn::self_attention(x, length, model, heads, d_kv);
    }
    return trained(g, mean(x * x), "adam");
  };
  return family;
}

// A table of words and one of positions, and a loss over all words, with Adafactor.
inline StepFamily words() {
  StepFamily family;
  family.build = [](const std::vector<std::int64_t>&, std::int64_t, bool) {
    const Dim batch{"batch", 256}, vocab{"vocab", 1024}, model{"model", 256}, places{"places", 4};
    Graph g;
    const Tensor ids = g.input("ids", {batch}, DType::kI32), place = g.input("place", {}, DType::kI32);
    const Tensor table = g.variable("table", {vocab, model}, init::zeros());
    const Tensor positions = g.variable("positions", {places, model}, init::zeros());
    const Tensor x = gather(table, ids, vocab) + gather(positions, place, places);
    const Tensor kernel = g.variable("kernel", {model, vocab}, init::zeros());
    const Tensor loss = mean(cross_entropy(einsum({x, kernel}, {batch, vocab}), ids, vocab));
    return trained(g, loss, "adafactor");
  };
  return family;
}

// A mixture of experts, weighted by a softmax.
inline StepFamily experts() {
  StepFamily family;
  family.build = [](const std::vector<std::int64_t>&, std::int64_t, bool) {
    const Dim batch{"batch", 64}, io{"io", 16}, experts{"experts", 4}, hidden{"hidden", 32};
    Graph g;
    const Tensor x = g.input("x", {batch, io});
    const Tensor gate = g.variable("gate", {io, experts}, init::zeros());
    const Tensor w = g.variable("w", {experts, io, hidden}, init::zeros());
    const Tensor v = g.variable("v", {experts, hidden, io}, init::zeros());
    const Tensor share = softmax(einsum({x, gate}, {batch, experts}), experts);
    const Tensor each = relu(einsum({x, w}, {experts, batch, hidden}));
    const Tensor y = einsum({einsum({each, v}, {experts, batch, io}), share}, {batch, io});
    return trained(g, mean((y - x) * (y - x)), "sgd");
  };
  return family;
}

// A recurrence in a loop.
inline StepFamily recurrence() {
  StepFamily family;
  family.build = [](const std::vector<std::int64_t>&, std::int64_t, bool) {
    const Dim batch{"batch", 32}, state{"state", 16}, inner{"inner", 32};
    Graph g;
    const Tensor x = g.input("x", {batch, state});
    const Tensor w = g.variable("w", {state, inner}, init::zeros());
    const Tensor v = g.variable("v", {inner, state}, init::zeros());
    const LoopResult result = loop(g, 3, {x}, [&](const Tensor&, const Tensors& carried) {
      const Tensor next = einsum({tanh(einsum({carried[0], w}, {batch, inner})), v}, {batch, state});
      return LoopStep{{next}, {}, {}, {}};
    });
    return trained(g, mean(result.carried[0] * result.carried[0]), "sgd");
  };
  return family;
}

// Everything that a search needs.
struct Bench {
  Bench(StepFamily made, const char* description, int processor_count)
      : family(std::move(made)),
        machine(Machine::parse(description, "test")),
        processors(processor_count),
        target(engine_target("cpu")),
        graphs(family),
        predictor(graphs, machine, target),
        parts(graphs.parts(1, false)),
        rules(parts->front().graph->data(), parts->front().graph->wanted()),
        bound(*parts, rules, family.batch, machine, processors, target) {}

  Search::Facts facts() const { return {rules, const_cast<FoldedGraphs&>(graphs), predictor, bound, machine, target}; }
  Patterns::Facts pattern_facts() { return {rules, graphs, machine, target}; }

  Demands demands(std::int64_t memory, int most_axes, Objective objective = Objective::kTime) const {
    PlanOptions options;
    options.memory_bytes = memory;
    options.most_axes = most_axes;
    options.objective = objective;
    return demands_of({options, rules, machine, processors});
  }

  StepFamily family;
  Machine machine;
  int processors;
  const Target& target;
  FoldedGraphs graphs;
  Predictor predictor;
  std::shared_ptr<const FoldedGraphs::Parts> parts;
  SplitRules rules;
  WorkBound bound;
};

// All roles of all axes of all ordered meshes, with all storage layouts, microbatches and layers computed again. The
// partitioner alone decides what is legal.
inline std::vector<Choice> all_choices(const Bench& bench, int most_axes) {
  std::vector<Choice> all;
  const DimSet roles = DimSet{1} << bench.rules.dims().size();
  const auto add = [&](const std::vector<AxisRole>& axes) {
    for (const std::int64_t microbatches : bench.family.microbatches)
      for (int repeats = 0; repeats <= bench.family.can_recompute; ++repeats)
        for (AxisSet stored = 0; stored < AxisSet{1} << axes.size(); ++stored)
          for (int level = stored ? 1 : 0; level <= (stored ? 3 : 0); ++level)
            all.push_back({.axes = axes,
                           .stored = stored,
                           .level = level,
                           .microbatches = microbatches,
                           .recompute = repeats ? Recompute::kLayers : Recompute::kNone});
  };
  for (const std::vector<int>& sizes : factorisations(bench.processors, most_axes, true)) {
    std::vector<std::vector<AxisRole>> layouts = {{}};
    for (const int size : sizes) {
      std::vector<std::vector<AxisRole>> longer;
      for (const std::vector<AxisRole>& axes : layouts)
        for (DimSet role = 0; role < roles; ++role) {
          longer.push_back(axes);
          longer.back().push_back({size, role});
        }
      layouts = std::move(longer);
    }
    for (const std::vector<AxisRole>& axes : layouts) add(axes);
  }
  return all;
}

}  // namespace weft::search_test
