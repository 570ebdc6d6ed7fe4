// A recipe: a graph as a list of calls of the public functions, with a mesh, a layout and a storage layout to try it on. What the
// generator writes, the checker builds, the shrinker cuts down and the emitter prints as C++.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "weft/weft.h"

namespace weft::random_graphs {

// The tensor that an earlier step made.
struct Ref {
  int step = -1;
  bool operator==(const Ref&) const = default;
};
using Refs = std::vector<Ref>;

using Arg = std::variant<Ref, Refs, Dim, Shape, double, std::int64_t, bool, std::string, DType>;

// One call of the table in calls.h; every step makes one tensor.
struct Step {
  std::string function;
  std::vector<Arg> args;
};

// The call `how` ("assign", "assign_add", "assign_sub") of a variable's step and a value's step.
struct Change {
  std::string how;
  Ref variable, value;
};

struct Recipe {
  std::uint64_t seed = 0;
  std::string kind = "general";  // of kinds.h
  bool wide = true;              // every float computed as f64; or as it is, on the cpu engine
  bool narrow = false;           // most floats are bf16, not f32
  std::vector<Step> steps;
  Refs outputs;                 // fetched
  Ref loss;                     // a scalar to differentiate; none if its step is -1
  Refs by;                      // inputs and variables to differentiate it by
  bool second = false;          // also differentiate, by the same, the sum of the squares of these derivatives
  Refs trained;                 // variables that descend along it
  std::vector<Change> changes;  // assignments beside those
  Refs metrics;                 // scalars
  std::string mesh, layout;
  std::string store;  // its rules may name absent axes; "" is none
  int store_level = 1;
};

constexpr std::uint64_t kSeed = 7;  // of sessions
constexpr double kRate = 0.125;
constexpr int kRuns = 2;  // so that the second sees what the first changed

// Calls visit(Ref&) for every reference of a step.
template <class Visit>
void visit_refs(Step& step, const Visit& visit) {
  for (Arg& arg : step.args) {
    if (Ref* ref = std::get_if<Ref>(&arg)) visit(*ref);
    if (Refs* refs = std::get_if<Refs>(&arg))
      for (Ref& ref : *refs) visit(ref);
  }
}

// … and for every reference from outside the steps.
template <class Visit>
void visit_roots(Recipe& recipe, const Visit& visit) {
  for (Refs* refs : {&recipe.outputs, &recipe.by, &recipe.trained, &recipe.metrics})
    for (Ref& ref : *refs) visit(ref);
  if (recipe.loss.step >= 0) visit(recipe.loss);
  for (Change& change : recipe.changes) {
    visit(change.variable);
    visit(change.value);
  }
}

inline bool is_input(const Step& step) { return step.function.starts_with("input"); }
inline bool is_variable(const Step& step) { return step.function.starts_with("variable"); }

}  // namespace weft::random_graphs
