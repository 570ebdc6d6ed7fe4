// Choice: one candidate of the search, in the numbers that the search counts with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/mesh_groups.h"
#include "plan/split_rules.h"
#include "weft/plan.h"

namespace weft {

// One axis of a mesh: its size and the dims that it splits.
struct AxisRole {
  int size = 1;
  DimSet dims = 0;
  bool operator==(const AxisRole&) const = default;
};

struct Choice {
  std::vector<AxisRole> axes = {};      // major to minor
  std::vector<std::string> names = {};  // of the axes; "" or missing: named after their dims
  AxisSet stored = 0;                   // the axes of the storage layout
  int level = 0;                        // of the storage layout; 0: none
  std::int64_t microbatches = 1;
  Recompute recompute = Recompute::kNone;
  bool operator==(const Choice&) const = default;
};

// The dims of a variable: the size, and the number in the rules or -1.
using VariableDims = std::vector<std::pair<std::int64_t, int>>;
VariableDims variable_dims(const Shape& shape, const SplitRules& rules);
// The axes over which the storage layout splits the variable beyond the layout.
AxisSet stored_axes(const Choice& choice, const VariableDims& dims);
// The dim that they split: the first one whose shard still divides; the number of dims: none.
std::size_t stored_dim(const Choice& choice, const VariableDims& dims);

// Whether the parts of every dim divide its size. `more`: further parts of the dim of this number, -1: of none.
bool divides(const SplitRules& rules, const std::vector<AxisRole>& axes, int dim = -1, std::int64_t more = 1);

std::vector<int> sizes_of(const std::vector<AxisRole>& axes);

// The parts of the choice as texts. `batch`: the dim after which an axis is called "data".
PlanChoice named(const Choice& choice, const SplitRules& rules, const std::string& batch);

// The meshes of `processors` processors with up to `most_axes` axes of sizes above one. If the order of axes means
// nothing, only ascending ones.
std::vector<std::vector<int>> factorisations(int processors, int most_axes, bool order_matters);

}  // namespace weft
