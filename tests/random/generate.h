// From a seed to a recipe: inputs and variables, a dozen moves, outputs and a loss; then meshes and layouts for it.
#pragma once

#include "moves_loops.h"
#include "moves_pointwise.h"
#include "moves_reduce.h"
#include "moves_shape.h"
#include "moves_windows.h"

namespace weft::random_graphs {

inline void add_inputs(Generator& gen) {
  const auto input = [&](const Shape& shape, DType dtype, double low, double high, bool whole) {
    const int n = gen.count();
    gen.add("input", {"x" + std::to_string(n), shape, dtype, low, high, whole, std::int64_t{n + gen.rng.below(1000)}},
            {low, whole ? high - 1 : high});
  };
  for (int i = gen.rng.between(2, 3); i > 0; --i) {
    if (gen.rng.chance(0.2)) input(gen.pool_shape(3), DType::kF32, -2, 3, true);  // ties
    else input(gen.pool_shape(3), DType::kF32, -1.5, 1.5, false);
  }
  if (gen.rng.chance(0.7)) {
    const DType dtype =
        gen.rng.pick(std::vector<DType>{DType::kI32, DType::kI32, DType::kI32, DType::kI64, DType::kU8, DType::kU32});
    const bool negative = dtype == DType::kI32 || dtype == DType::kI64;
    input(gen.pool_shape(2, 100), dtype, negative ? -1 : 0, gen.rng.pick(std::vector<int>{4, 8, 14}), true);
  }
  if (gen.rng.chance(0.3)) input({}, DType::kI32, -1, 12, true);
  if (gen.rng.chance(0.4)) input(gen.pool_shape(2), DType::kBool, 0, 2, true);
}

inline void add_variables(Generator& gen) {
  const auto name = [&] { return "w" + std::to_string(gen.count()); };
  for (int i = gen.rng.between(1, 2); i > 0; --i) {
    // Changed by the first run, so that the second finds what sums have left: not exact.
    if (gen.rng.chance(0.85)) gen.add("variable", {name(), gen.pool_shape(2), -1.0, 1.0}, {-2, 2, false});
    else gen.add("variable_mixed", {name(), gen.pool_shape(2), 0.5}, {-4, 4, false});
  }
  if (gen.rng.chance(0.2)) gen.add("variable_whole", {name(), gen.pool_shape(1), 2.0}, {-30, 30});
}

// Tensors that no step takes.
inline std::vector<int> leaves(const Generator& gen) {
  std::vector<bool> used(static_cast<std::size_t>(gen.count()));
  Recipe recipe = gen.recipe;
  for (Step& step : recipe.steps)
    visit_refs(step, [&](const Ref& ref) { used[static_cast<std::size_t>(ref.step)] = true; });
  std::vector<int> found;
  for (int v = 0; v < gen.count(); ++v)
    if (!used[static_cast<std::size_t>(v)]) found.push_back(v);
  return found;
}

inline void add_outputs(Generator& gen) {
  for (int v : leaves(gen))
    if (!is_variable(gen.recipe.steps[static_cast<std::size_t>(v)]) && gen.recipe.outputs.size() < 4)
      gen.recipe.outputs.push_back({v});
  if (gen.rng.chance(0.5)) gen.recipe.outputs.push_back({gen.rng.below(gen.count())});
}

inline void add_loss(Generator& gen) {
  std::vector<int> ends;
  for (int v : leaves(gen))
    if (gen.floats(v)) ends.push_back(v);
  gen.rng.shuffle(ends);
  if (ends.empty()) return;
  Refs terms;
  for (std::size_t i = 0; i < std::min<std::size_t>(ends.size(), 3); ++i) {
    const int small = gen.unit(ends[i]);
    const int term = gen.rng.chance(0.7) ? gen.add("square", {Ref{small}}, {0, 2, gen.info(small).exact}) : small;
    terms.push_back({gen.add("mean", {Ref{term}}, {-2, 2, false})});
  }
  const int loss = terms.size() == 1 ? terms[0].step : gen.add("add_n", {terms}, {-6, 6, false});
  gen.recipe.loss = {loss};
  if (gen.rng.chance(0.5)) gen.recipe.metrics.push_back({loss});
}

// What is differentiated by, what descends, what is assigned.
inline void add_state(Generator& gen) {
  Recipe& recipe = gen.recipe;
  for (int v = 0; v < gen.count(); ++v) {
    const Step& step = recipe.steps[static_cast<std::size_t>(v)];
    const bool variable = is_variable(step);
    if (!variable && !is_input(step)) continue;
    if (recipe.loss.step >= 0 && gen.floats(v) && gen.rng.chance(0.8)) recipe.by.push_back({v});
    if (!variable) continue;
    const int value = gen.pick([&](int x) {
      return gen.dtype(x) == gen.dtype(v) && same_dims(gen.shape(x), gen.shape(v)) && x != v && gen.bound(x) < 12;
    });
    if (value >= 0 && (gen.wholes(v) || gen.rng.chance(0.3))) {
      const bool bounded = gen.wholes(v);  // so that two runs keep it in its range
      recipe.changes.push_back({bounded ? gen.rng.pick({"assign_add", "assign_sub"}) : "assign", {v}, {value}});
      if (!bounded && gen.bound(value) > 2) recipe.changes.pop_back();
    } else if (recipe.loss.step >= 0 && gen.floats(v)) {
      recipe.trained.push_back({v});
    }
  }
}

inline Recipe generate(std::uint64_t seed) {
  Generator gen(seed);
  add_inputs(gen);
  add_variables(gen);
  Moves moves = kPointwiseMoves;
  for (const Moves* more : {&kReduceMoves, &kShapeMoves, &kWindowMoves, &kLoopMoves})
    moves.insert(moves.end(), more->begin(), more->end());
  if (gen.rng.chance(0.35)) moves.push_back({"own_layout", own_layout, 16});
  for (int i = gen.rng.between(3, 14); i > 0; --i) make_one(gen, moves);
  add_outputs(gen);
  if (gen.rng.chance(0.85)) add_loss(gen);
  add_state(gen);
  if (gen.recipe.outputs.empty()) gen.recipe.outputs.push_back({gen.count() - 1});
  return gen.recipe;
}

// --- Meshes and layouts ---

inline std::string random_mesh(Rng& rng) {
  return rng.pick({"p:2", "p:3", "p:4", "p:2 q:2", "p:2 q:3", "p:3 q:2", "p:2 q:2 r:2"});
}

// Each axis on one of the dims, now and then on two or on none; products of axes in any order.
inline std::string random_layout(Rng& rng, const std::vector<std::string>& dims, const Mesh& mesh) {
  std::map<std::string, std::vector<std::string>> rules;
  std::vector<Axis> axes = mesh.axes();
  rng.shuffle(axes);
  for (const Axis& axis : axes)
    for (int i = rng.pick(std::vector<int>{0, 1, 1, 1, 1, 1, 2, 3}); i > 0; --i) {
      std::vector<std::string>& laid = rules[rng.pick(dims)];
      if (std::find(laid.begin(), laid.end(), axis.name) == laid.end()) laid.push_back(axis.name);
    }
  std::string text;
  for (const auto& [dim, names] : rules) {
    text += (text.empty() ? "" : " ") + dim + ":" + names[0];
    for (std::size_t i = 1; i < names.size(); ++i) text += "+" + names[i];
  }
  return text;
}

// Half of the time none; otherwise `*` on some of the axes in any order.
inline std::string random_store(Rng& rng, const Mesh& mesh) {
  std::vector<Axis> axes = mesh.axes();
  if (rng.chance(0.5) || axes.empty()) return "";
  rng.shuffle(axes);
  std::string text = "*:" + axes[0].name;
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (rng.chance(0.5)) text += "+" + axes[i].name;
  return text + "?";
}

}  // namespace weft::random_graphs
