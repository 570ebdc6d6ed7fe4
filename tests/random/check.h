// The check of one recipe. The judge (tests/judge) says what is right: the engine's numbers on one processor and on a mesh
// are held against it, derivatives against differences of it, and every derivative that should be there has to be. Beside
// that, a program survives its own text, and every pass leaves the numbers alone.
#pragma once

#include <optional>

#include "differences.h"

namespace weft::random_graphs {

// `kind` says what went wrong, so that the shrinker does not drift from one failure to another.
struct Failure {
  std::string kind, detail;
};

enum class Passes { kNone, kFirst, kAll };  // whose programs are run beside the last

struct Verdict {
  std::optional<Failure> failure = {};
  bool refused = false;   // the layout cannot work, and was refused
  std::string text = {};  // of the program that ran
};

// What a graph is checked under: the parts of a recipe that are not its graph.
struct Conditions {
  bool wide = true;              // f64; else the cpu engine in the graph's own dtypes
  bool on_reference = false;     // the mesh runs on the reference engine too
  bool extreme = false;          // infinities and NaN are right where the judge has them
  bool own_layouts = false;      // whether a layout works cannot be told beforehand
  bool own_derivatives = false;  // derivatives may be anything: custom_gradient
  std::string mesh = {}, layout = {}, store = {};
  int store_level = 1;
};

Conditions conditions_of(const Recipe& recipe);

// How many elements were compared, and of how many the judge knew nothing or little.
struct Compared {
  std::int64_t elements = 0, unknown = 0, loose = 0;
};

// The part of the check that no mesh changes, done once for all layouts of a graph.
struct Truth {
  Built built;
  Wanted want;
  std::optional<Failure> failure;
  Compared compared;  // on one processor
  Slopes slopes = Slopes::kNone;
};

// `slopes`: whether derivatives are held against differences.
Truth truth_of(Built built, const Conditions& c, bool slopes);

Verdict check_layout(const Conditions& c, const Truth& truth, Passes passes);

// All of it.
Verdict check(Built built, const Conditions& c, Passes passes);
Verdict check(const Recipe& recipe, Passes passes);

// Arrays under names for messages, as a few runs gave them.
using Results = std::vector<std::pair<std::string, Array>>;
std::optional<std::string> difference(const Results& got, const Wanted& want, const judge::Arithmetic& how,
                                      Compared* counted = nullptr);

}  // namespace weft::random_graphs
