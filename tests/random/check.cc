#include "check.h"

#include <cmath>

#include "base/str.h"
#include "judge/compare.h"
#include "judge/judge.h"
#include "run.h"

namespace weft::random_graphs {

Conditions conditions_of(const Recipe& recipe) {
  return {.wide = recipe.wide,
          .on_reference = recipe.wide && recipe.seed % 4 == 0,
          .extreme = recipe.kind == "extreme",
          .own_layouts = has_own_layouts(recipe),
          .own_derivatives = has_own_derivatives(recipe),
          .mesh = recipe.mesh,
          .layout = recipe.layout,
          .store = recipe.store,
          .store_level = recipe.store_level};
}

std::optional<std::string> difference(const Results& got, const Wanted& want, const judge::Arithmetic& how,
                                      Compared* counted) {
  if (got.size() != want.size()) return str(got.size(), " results, not ", want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    const judge::Comparison comparison = judge::compare(got[i].second, want[i].second, how);
    if (counted) {
      counted->elements += comparison.compared;
      counted->unknown += comparison.unknown;
      counted->loose += comparison.loose;
    }
    if (comparison.difference) return str(want[i].first, " ", *comparison.difference);
  }
  return {};
}

namespace {

// The arithmetic of the device under test.
judge::Arithmetic arithmetic_of(bool wide) { return {wide, test::device_under_test().name == "xla"}; }

// What gradients() left out although the loss depends on it.
std::optional<Failure> missing_derivative(const Built& built, bool own_derivatives) {
  for (const Differentiated& d : built.differentiated)
    for (std::size_t i = 0; i < d.by.size(); ++i)
      if (!d.derivatives[i] && judge::depends(built.graph, d.y.id(), d.by[i].id(), own_derivatives))
        return Failure{"missing", str("gradients() gives no derivative of '", d.y.name(), "' by '", d.by[i].name(),
                                      "', on which it depends")};
  return {};
}

bool is_finite(const Wanted& want) {
  for (const auto& [name, value] : want)
    for (double x : value.f)
      if (!std::isfinite(x)) return false;
  return true;
}

// On one processor: the reference engine in f64, the cpu engine in the graph's own dtypes.
std::optional<Failure> check_one(Truth& truth, bool wide) {
  try {
    Compiled one = compile(truth.built, wide, Mesh(), "", {}, wide ? device::reference() : test::device_under_test());
    if (const auto differs = difference(run(one, truth.built, wide), truth.want, {wide}, &truth.compared))
      return Failure{"one processor differs", *differs};
  } catch (const std::exception& error) {
    return Failure{"one processor", error.what()};
  }
  return {};
}

}  // namespace

Truth truth_of(Built built, const Conditions& c, bool slopes) {
  Truth truth;
  truth.built = std::move(built);
  try {
    truth.want = judged(truth.built, arithmetic_of(c.wide));
  } catch (const std::exception& error) {
    truth.failure = {"judge", error.what()};
    return truth;
  }
  if (!c.extreme && !is_finite(truth.want)) truth.failure = {"not finite", "the judge's numbers"};
  if (!truth.failure) truth.failure = missing_derivative(truth.built, c.own_derivatives);
  if (!truth.failure && slopes && !c.own_derivatives && !c.extreme) {
    const SlopeCheck check = check_slopes(truth.built);
    truth.slopes = check.slopes;
    if (check.difference) truth.failure = {"slope", *check.difference};
  }
  if (!truth.failure) truth.failure = check_one(truth, c.wide);
  return truth;
}

namespace {

// Every text reads back to itself; programs before the passes give the numbers of the last.
std::optional<Failure> check_passes(const Compiled& compiled, const std::map<std::string, Array>& variables,
                                    const Truth& truth, bool wide, Passes passes) {
  for (std::size_t i = 0; i < compiled.dumps.size(); ++i) {
    const auto& [pass, text] = compiled.dumps[i];
    const Program program = parse_program(text);
    if (to_text(program) != text)
      return Failure{"text", str("after ", pass, ":\n", text, "\nreads back as\n", to_text(program))};
    if (passes == Passes::kNone || (i > 0 && passes == Passes::kFirst)) continue;
    const Results got = ProgramRun(program, variables, wide).run(truth.built.feeds);
    if (const auto differs = difference(got, truth.want, {wide}))
      return Failure{str("pass ", i, " ", pass), str("the program after ", pass, " differs: ", *differs)};
  }
  if (compiled.dumps.back().second != compiled.step.text())
    return Failure{"text", "Executable::text is not what the last pass left"};
  return {};
}

}  // namespace

Verdict check_layout(const Conditions& c, const Truth& truth, Passes passes) {
  const Mesh mesh = Mesh::parse(c.mesh);
  const bool legal = !c.own_layouts && should_work(truth.built, mesh, c.layout);
  try {
    Compiled compiled =
        compile(truth.built, c.wide, mesh, c.layout, c.store.empty() ? Store() : Store::parse(c.store, c.store_level),
                c.on_reference ? device::reference() : test::device_under_test());
    if (!c.own_layouts && !legal) return {.failure = Failure{"accepted", "a layout that cannot work was taken"}};
    std::map<std::string, Array> variables;
    if (passes != Passes::kNone) variables = variables_of(compiled.session);
    const Results got = run(compiled, truth.built, c.wide);
    if (const auto differs = difference(got, truth.want, {c.wide})) return {.failure = Failure{"difference", *differs}};
    return {.failure = check_passes(compiled, variables, truth, c.wide, passes), .text = compiled.step.text()};
  } catch (const UserError& error) {
    if (legal) return {.failure = Failure{"refused", error.what()}};
    return {.refused = true};
  } catch (const std::exception& error) {
    return {.failure = Failure{"thrown", error.what()}};
  }
}

Verdict check(Built built, const Conditions& c, Passes passes) {
  const Truth truth = truth_of(std::move(built), c, true);
  if (truth.failure) return {.failure = truth.failure};
  return check_layout(c, truth, passes);
}

Verdict check(const Recipe& recipe, Passes passes) { return check(build(recipe), conditions_of(recipe), passes); }

}  // namespace weft::random_graphs
