#include "generate.h"

#include <set>

#include "moves_carried.h"
#include "moves_extreme.h"
#include "moves_loops.h"
#include "moves_pointwise.h"
#include "moves_reduce.h"
#include "moves_shape.h"
#include "moves_whole.h"
#include "moves_windows.h"

namespace weft::random_graphs {

namespace {

// Names of inputs and variables that look like the engine's own, in graphs of that kind.
std::string named(Generator& gen, const std::string& plain) {
  if (gen.recipe.kind != "names") return plain;
  return gen.rng.pick({"next", "stop", "x'", "trips", "metric ", "%", "#k", "output", "adam/", "dx "}) +
         plain.substr(1);
}

void add_inputs(Generator& gen) {
  const auto input = [&](const Shape& shape, DType dtype, double low, double high, bool whole) {
    const int n = gen.count();
    gen.add(
        "input",
        {named(gen, "x" + std::to_string(n)), shape, dtype, low, high, whole, std::int64_t{n + gen.rng.below(1000)}},
        {low, whole ? high - 1 : high});
  };
  for (int i = gen.rng.between(2, 3); i > 0; --i) {
    if (gen.rng.chance(0.2)) input(gen.pool_shape(3), gen.real(), -2, 3, true);  // ties
    else input(gen.pool_shape(3), gen.real(), -1.5, 1.5, false);
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

void add_variables(Generator& gen) {
  const auto name = [&] { return named(gen, "w" + std::to_string(gen.count())); };
  for (int i = gen.rng.between(1, 2); i > 0; --i) {
    // Changed by the first run, so that the second finds what sums have left: not exact.
    const char* const plain = gen.recipe.narrow ? "variable_narrow" : "variable";
    if (gen.rng.chance(0.85)) gen.add(plain, {name(), gen.pool_shape(2), -1.0, 1.0}, {-2, 2, false});
    else gen.add("variable_mixed", {name(), gen.pool_shape(2), 0.5}, {-4, 4, false});
  }
  if (gen.rng.chance(0.2)) gen.add("variable_whole", {name(), gen.pool_shape(1), 2.0}, {-30, 30});
}

// Tensors that no step takes.
std::vector<int> leaves(const Generator& gen) {
  std::vector<bool> used(static_cast<std::size_t>(gen.count()));
  Recipe recipe = gen.recipe;
  for (Step& step : recipe.steps)
    visit_refs(step, [&](const Ref& ref) { used[static_cast<std::size_t>(ref.step)] = true; });
  std::vector<int> found;
  for (int v = 0; v < gen.count(); ++v)
    if (!used[static_cast<std::size_t>(v)]) found.push_back(v);
  return found;
}

void add_outputs(Generator& gen) {
  for (int v : leaves(gen))
    if (!is_variable(gen.recipe.steps[static_cast<std::size_t>(v)]) && gen.recipe.outputs.size() < 4)
      gen.recipe.outputs.push_back({v});
  if (gen.rng.chance(0.5)) gen.recipe.outputs.push_back({gen.rng.below(gen.count())});
}

void add_loss(Generator& gen) {
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
  int loss = terms.size() == 1 ? terms[0].step : gen.add("add_n", {terms}, {-6, 6, false});
  if (gen.recipe.narrow) loss = gen.add("cast", {Ref{loss}, DType::kF32}, gen.info(loss));
  gen.recipe.loss = {loss};
  if (gen.rng.chance(0.5)) gen.recipe.metrics.push_back({loss});
}

// What is differentiated by, what descends, what is assigned.
void add_state(Generator& gen) {
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

}  // namespace

// --- Kinds ---

const std::vector<std::string>& kinds() {
  static const std::vector<std::string> all = {"general", "carried", "second", "whole", "regions", "extreme", "names"};
  return all;
}

const std::string& kind_of(std::uint64_t seed) { return kinds()[seed % kinds().size()]; }

namespace {

Moves joined_moves(std::initializer_list<const Moves*> lists) {
  Moves all;
  for (const Moves* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

Moves some_of(const Moves& from, const std::set<std::string>& names) {
  Moves some;
  for (const Move& move : from)
    if (names.contains(move.name)) some.push_back(move);
  return some;
}

// Some moves by name, without bringing what they make back into a small range.
Moves untamed(const Moves& from, const std::set<std::string>& names) {
  Moves some = some_of(from, names);
  for (Move& move : some) move.tame = false;
  return some;
}

const std::set<std::string> kPlaceMoves = {
    "broadcasts", "transposes", "renames",        "reshapes",        "concats",         "stacks", "pieces",  "pads",
    "shifts",     "gathers",    "dynamic_slices", "dynamic_updates", "scatter_updates", "lines",  "scatters"};

// What has derivatives worth differentiating again, and no jumps.
const Moves kSmoothMoves = {{"unary", unary, 6},
                            {"binary", binary, 6},
                            {"with_number", with_number, 2},
                            {"add_many", add_many},
                            {"contraction", contraction, 6},
                            {"sums", sums, 2},
                            {"product", product, 1},
                            {"exponentials", exponentials, 3},
                            {"attention", attention, 3},
                            {"running_sum", running_sum, 1},
                            {"convolutions", convolutions, 3},
                            {"pools", pools, 1},
                            {"truths_or_not", truths_or_not, 1},
                            {"broadcasts", broadcasts, 1},
                            {"reshapes", reshapes, 2},
                            {"concats", concats, 1},
                            {"pieces", pieces, 1},
                            {"pads", pads, 1},
                            {"shifts", shifts, 1},
                            {"transposes", transposes, 1}};

Moves moves_of(const std::string& kind) {
  const Moves general = joined_moves({&kPointwiseMoves, &kReduceMoves, &kShapeMoves, &kWindowMoves, &kLoopMoves});
  const Moves places = untamed(kShapeMoves, kPlaceMoves);
  if (kind == "whole") {
    const Moves swaps = untamed(kCarriedMoves, {"places_change"}), logic = untamed(kPointwiseMoves, {"logic"}),
                truths = untamed(kReduceMoves, {"extrema"});
    return joined_moves({&kWholeMoves, &places, &swaps, &logic, &truths});
  }
  if (kind == "extreme") {
    const Moves swaps = untamed(kCarriedMoves, {"places_change"});
    return joined_moves({&kExtremeMoves, &places, &swaps});
  }
  if (kind == "carried") return joined_moves({&general, &kCarriedMoves, &kCarriedMoves, &kCarriedMoves});
  if (kind == "regions")
    return joined_moves({&general, &kRegionMoves, &kRegionMoves, &kRegionMoves, &kLoopMoves, &kLoopMoves});
  if (kind == "second") {
    const Moves loops = untamed(kCarriedMoves, {"smooth_loops"});
    return joined_moves({&kSmoothMoves, &kLoopMoves, &loops, &loops, &kRegionMoves});
  }
  return general;
}

// Graphs in bf16: the moves without jumps, since a number is rarely far from one there.
Moves narrow_moves(const std::string& kind) {
  static const Moves places = some_of(kShapeMoves, kPlaceMoves);
  static const Moves sources =
      some_of(kPointwiseMoves, {"source", "dropped", "noisy", "printed", "by_hand", "selection"});
  static const Moves wide = {{"widened", widened, 3}};
  const Moves smooth = joined_moves({&kSmoothMoves, &kLoopMoves, &wide});
  if (kind == "second") return joined_moves({&smooth, &kRegionMoves});
  if (kind == "carried") return joined_moves({&smooth, &places, &sources, &kCarriedMoves, &kCarriedMoves});
  if (kind == "regions") return joined_moves({&smooth, &places, &sources, &kRegionMoves, &kRegionMoves});
  return joined_moves({&smooth, &places, &sources});
}

// Dims whose names are close to those that the engine makes up: without its prefix they are the user's.
const std::vector<Dim> kNamedPool = {
    {"k", 12},   {"trips0", 24}, {"from", 6}, {"row", 4},   {"trips1", 8}, {"microbatch_part", 12},
    {"rank", 2}, {"at", 12},     {"run", 6},  {"table", 4}, {"best", 8},   {"first", 2}};

void add_whole_inputs(Generator& gen) {
  static const std::vector<DType> kDTypes = {DType::kI32, DType::kI64, DType::kU32, DType::kU8};
  const DType main = kDTypes[gen.recipe.seed / kinds().size() % kDTypes.size()];
  const auto input = [&](const Shape& shape, DType dtype, double low, double high) {
    const int n = gen.count();
    gen.add("input", {"x" + std::to_string(n), shape, dtype, low, high, true, std::int64_t{n + gen.rng.below(1000)}},
            {low, high - 1});
  };
  for (int i = gen.rng.between(2, 3); i > 0; --i) {
    const DType dtype = gen.rng.chance(0.7) ? main : gen.rng.pick(kDTypes);
    const Info range = whole_range(dtype);
    if (gen.rng.chance(0.5)) input(gen.pool_shape(3), dtype, range.low, range.high);
    else input(gen.pool_shape(3), dtype, range.low < 0 ? -12 : 0, 14);
  }
  input(gen.pool_shape(2, 100), DType::kI32, -1, 14);  // indices
  input(gen.pool_shape(2), DType::kBool, 0, 2);
  if (gen.rng.chance(0.3)) gen.add("variable_whole", {std::string("w"), gen.pool_shape(1), 2.0}, {-30, 30});
}

void add_extreme_inputs(Generator& gen) {
  for (int i = gen.rng.between(2, 3); i > 0; --i) {
    const int n = gen.count();
    gen.add("input_extreme",
            {"x" + std::to_string(n), gen.pool_shape(3), DType::kF32, -3.0, 3.0, false,
             std::int64_t{n + gen.rng.below(1000)}},
            kAnyNumber);
  }
  const int n = gen.count();
  gen.add("input", {"x" + std::to_string(n), gen.pool_shape(2, 100), DType::kI32, -1.0, 14.0, true, std::int64_t{n}},
          {-1, 13});
}

// The sum of an extreme tensor: its derivatives say more than it does itself.
void add_extreme_loss(Generator& gen) {
  std::vector<int> ends;
  for (int v : leaves(gen))
    if (gen.floats(v)) ends.push_back(v);
  if (ends.empty()) return;
  gen.recipe.loss = {gen.add("reduce_sum", {Ref{gen.rng.pick(ends)}}, kAnyNumber)};
  for (int v = 0; v < gen.count(); ++v)
    if (is_input(gen.recipe.steps[static_cast<std::size_t>(v)]) && gen.floats(v)) gen.recipe.by.push_back({v});
}

}  // namespace

Generator grown(std::uint64_t seed, int moves) {
  Generator gen(seed);
  add_inputs(gen);
  add_variables(gen);
  const Moves all = joined_moves(
      {&kPointwiseMoves, &kReduceMoves, &kShapeMoves, &kWindowMoves, &kLoopMoves, &kCarriedMoves, &kRegionMoves});
  for (int i = 0; i < moves; ++i) make_one(gen, all);
  return gen;
}

Recipe generate(std::uint64_t seed) {
  Generator gen(seed);
  const std::string kind = gen.recipe.kind = kind_of(seed);
  // By turns f64, f32 and bf16; whole numbers and extreme floats have no bf16.
  const std::uint64_t turn = seed / kinds().size() % 3;
  gen.recipe.wide = turn == 0;
  gen.recipe.narrow = turn == 2 && kind != "whole" && kind != "extreme";
  gen.recipe.second = kind == "second";
  if (kind == "names") gen.pool = kNamedPool;
  if (kind == "whole") add_whole_inputs(gen);
  else if (kind == "extreme") add_extreme_inputs(gen);
  else {
    add_inputs(gen);
    add_variables(gen);
  }
  Moves moves = gen.recipe.narrow ? narrow_moves(kind) : moves_of(kind);
  if (gen.rng.chance(0.35)) moves.push_back({"own_layout", own_layout, 16, kind != "whole" && kind != "extreme"});
  for (int i = kind == "second" ? gen.rng.between(1, 4) : gen.rng.between(3, 14); i > 0; --i) make_one(gen, moves);
  add_outputs(gen);
  if (kind == "extreme") {
    if (gen.rng.chance(0.5)) add_extreme_loss(gen);
  } else {
    if (kind == "second" || gen.rng.chance(0.85)) add_loss(gen);
    add_state(gen);
  }
  if (gen.recipe.outputs.empty()) gen.recipe.outputs.push_back({gen.count() - 1});
  return gen.recipe;
}

// --- Meshes and layouts ---

std::string random_mesh(Rng& rng) {
  return rng.pick({"p:2", "p:3", "p:4", "p:2 q:2", "p:2 q:3", "p:3 q:2", "p:2 q:2 r:2"});
}

std::string random_layout(Rng& rng, const std::vector<std::string>& dims, const Mesh& mesh) {
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

std::string random_store(Rng& rng, const Mesh& mesh) {
  std::vector<Axis> axes = mesh.axes();
  if (rng.chance(0.5) || axes.empty()) return "";
  rng.shuffle(axes);
  std::string text = "*:" + axes[0].name;
  for (std::size_t i = 1; i < axes.size(); ++i)
    if (rng.chance(0.5)) text += "+" + axes[i].name;
  return text + "?";
}

}  // namespace weft::random_graphs
