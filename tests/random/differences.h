// The judge's numbers of a built graph, and derivatives against finite differences of them: a wrong rule of differentiation
// makes the same graph for every engine, so only the slope of the function itself can show it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "build.h"
#include "judge/value.h"

namespace weft::random_graphs {

// What a few runs should give, under names for messages: as Results of run.h, in the same order.
using Wanted = std::vector<std::pair<std::string, judge::Value>>;

Wanted judged(const Built& built, const judge::Arithmetic& how);

// Whether derivatives are what a custom_gradient says, true or not.
bool has_own_derivatives(const Recipe& recipe);

enum class Slopes { kNone, kChecked, kRough };  // rough: the function has a kink or a jump here

struct SlopeCheck {
  Slopes slopes = Slopes::kNone;
  std::optional<std::string> difference = {};
};

// Central differences of two widths, and those to either side: where they disagree the function is rough and is passed over.
SlopeCheck check_slopes(const Built& built);

}  // namespace weft::random_graphs
