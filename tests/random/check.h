// The check of one recipe: its numbers on its mesh and layout are those of one processor, its program survives its own
// text, and every pass leaves the numbers alone.
#pragma once

#include <cmath>
#include <optional>

#include "base/str.h"
#include "run.h"

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

constexpr double kTolerance = 1e-9;
// Where sums cancel all that is left is rounding: entries are compared to this at least.
constexpr double kSmallest = 1e-3;

inline double largest(const Array& x) {
  double most = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i)
    most = std::isfinite(x.at(i)) ? std::max(most, std::fabs(x.at(i))) : INFINITY;
  return most;
}

inline std::optional<std::string> difference(const Results& got, const Results& want) {
  if (got.size() != want.size()) return str(got.size(), " results, not ", want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const auto& [name, b] = want[i];
    const Array& a = got[i].second;
    if (a.dtype() != b.dtype() || a.shape() != b.shape())
      return str(name, " is ", a.dtype(), " ", a.shape(), ", not ", b.dtype(), " ", b.shape());
    const double scale = std::max(largest(b), kSmallest);
    for (std::int64_t k = 0; k < b.elements(); ++k)
      if (!(std::fabs(a.at(k) - b.at(k)) <= kTolerance * scale))
        return str(name, " ", b.shape(), " at element ", k, ": ", a.at(k), ", not ", b.at(k), "; the largest is ",
                   largest(b));
  }
  return {};
}

// The part of the check that no mesh changes, done once for all layouts of a graph.
struct Reference {
  Built built;
  Results want;
  std::map<std::string, Array> variables;  // as they start
  std::optional<Failure> failure;
};

inline Reference reference(const Recipe& recipe) {
  Reference result;
  try {
    result.built = build(recipe);
    Compiled one = compile(result.built, Mesh(), "", {}, runtime::reference());
    result.variables = variables_of(one.session);
    result.want = run(one, result.built);
  } catch (const std::exception& error) {
    result.failure = {"one processor", error.what()};
    return result;
  }
  for (const auto& [name, array] : result.want)
    if (!std::isfinite(largest(array))) result.failure = {"not finite", name};
  return result;
}

// Every text reads back to itself; programs before the passes give the numbers of the last.
inline std::optional<Failure> check_passes(const Compiled& compiled, const Reference& one, const Results& got,
                                           Passes passes) {
  for (std::size_t i = 0; i < compiled.dumps.size(); ++i) {
    const auto& [pass, text] = compiled.dumps[i];
    const Program program = parse_program(text);
    if (to_text(program) != text)
      return Failure{"text", str("after ", pass, ":\n", text, "\nreads back as\n", to_text(program))};
    if (passes == Passes::kNone || (i > 0 && passes == Passes::kFirst)) continue;
    if (const auto differs = difference(ProgramRun(program, one.variables).run(one.built.feeds), got))
      return Failure{str("pass ", i, " ", pass), str("the program after ", pass, " and the last differ: ", *differs)};
  }
  if (compiled.dumps.back().second != compiled.step.text())
    return Failure{"text", "Executable::text is not what the last pass left"};
  return {};
}

inline Verdict check_layout(const Recipe& recipe, const Reference& one, Passes passes) {
  const Mesh mesh = Mesh::parse(recipe.mesh);
  const bool certain = !has_own_layouts(recipe);
  const bool legal = certain && should_work(one.built, mesh, recipe.layout);
  try {
    Compiled compiled = compile(one.built, mesh, recipe.layout, store_of(recipe));
    if (certain && !legal) return {.failure = Failure{"accepted", "a layout that cannot work was taken"}};
    const Results got = run(compiled, one.built);
    if (const auto differs = difference(got, one.want)) return {.failure = Failure{"difference", *differs}};
    return {.failure = check_passes(compiled, one, got, passes), .text = compiled.step.text()};
  } catch (const UserError& error) {
    if (legal) return {.failure = Failure{"refused", error.what()}};
    return {.refused = true};
  } catch (const std::exception& error) {
    return {.failure = Failure{"thrown", error.what()}};
  }
}

inline Verdict check(const Recipe& recipe, Passes passes) {
  const Reference one = reference(recipe);
  if (one.failure) return {.failure = one.failure};
  return check_layout(recipe, one, passes);
}

}  // namespace weft::random_graphs
