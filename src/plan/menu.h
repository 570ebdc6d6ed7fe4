// The menu: the choices that people make by hand. Data-parallel, with or without a storage layout over all processors;
// model-parallel; and both on a mesh of two axes.
#pragma once

#include <string>
#include <vector>

#include "plan/choice.h"

namespace weft {

struct MenuSource {
  const SplitRules& rules;
  const std::string& batch;
  DimSet heavy = 0;  // dims of large variables
};

// On meshes of these sizes, with one or two axes; without microbatches. `allowed`: dims that may be split.
std::vector<Choice> menu_of(const MenuSource& source, const std::vector<int>& sizes, DimSet allowed, bool allow_store);

}  // namespace weft
