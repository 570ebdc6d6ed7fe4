// The work of a program of one processor, as the bounds of the search need it.
#pragma once

#include <utility>
#include <vector>

#include "plan/bound.h"
#include "plan/split_rules.h"
#include "program/ir.h"

namespace weft {

struct ProgramWork {
  std::vector<std::pair<WorkBound::Work, double>> order;  // with the times that it runs in a step
  std::vector<WorkBound::Partial> partials, gradients;    // gradients: partial values that the update reads
};

// `factor` for each element of the shape.
Extent extent_of(const Shape& shape, const SplitRules& rules, double factor);

// By instruction: whether it is work that a storage layout may divide, of the update or on variables or gradients alone.
std::vector<bool> divided_by_storage(const Program& program);

// By value: by how many times wider a product is than its operands, which it may be only where no reduction follows it.
ByValue<double> widening(const Program& program);

// `program`: after all passes. Copies are left out: another layout may need none.
ProgramWork work_of(const Program& program, const SplitRules& rules, const Rates& rates, const Machine& machine);

}  // namespace weft
