// The shrinker, on faults put in by hand, and the C++ that a failing graph is saved as.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "check.h"
#include "emit.h"
#include "generate.h"
#include "shrink.h"

namespace weft::random_graphs::shrink_test {
namespace {

int count_of(const Recipe& recipe, const std::string& function) {
  return static_cast<int>(
      std::count_if(recipe.steps.begin(), recipe.steps.end(), [&](const Step& s) { return s.function == function; }));
}

// The first seed whose recipe fails so.
Recipe first_that(const Fails& fails) {
  for (std::uint64_t seed = 1; seed < 2000; ++seed)
    if (Recipe recipe = generate(seed); fails(recipe)) return recipe;
  throw InternalError("no seed gives such a recipe");
}

TEST(Shrinker, KeepsTheOneFunctionThatFails) {
  for (const char* function : {"tanh", "einsum", "concat", "top_k_values", "select", "cumsum"}) {
    SCOPED_TRACE(function);
    const Fails fails = [&](Recipe recipe) {
      recipe.changes.clear();  // nothing makes a result of what only a change of a variable uses
      return count_of(pruned(recipe), function) > 0;
    };
    const Recipe whole = first_that(fails), small = Shrinker(whole, fails).run();
    EXPECT_TRUE(fails(small));
    EXPECT_EQ(count_of(small, function), 1);
    // Beside it only what it takes: inputs or variables.
    for (const Step& step : small.steps)
      EXPECT_TRUE(step.function == function || is_input(step) || is_variable(step)) << step.function;
    EXPECT_EQ(small.outputs.size() + small.metrics.size() + small.by.size() + small.trained.size() +
                  2 * small.changes.size() + (small.loss.step >= 0),
              1u);
    const Truth truth = truth_of(build(small), conditions_of(small), true);
    EXPECT_FALSE(truth.failure) << truth.failure->detail;
  }
}

// A fault that needs a chain of two functions: what lies between goes where it can, the two stay.
TEST(Shrinker, KeepsAChain) {
  const Fails fails = [](const Recipe& recipe) {
    Recipe r = pruned(recipe);
    std::vector<bool> after(r.steps.size());
    bool chained = false;
    for (std::size_t i = 0; i < r.steps.size(); ++i) {
      visit_refs(r.steps[i], [&](const Ref& ref) {
        if (after[static_cast<std::size_t>(ref.step)]) after[i] = true;
      });
      chained |= after[i] && r.steps[i].function == "mean";
      if (r.steps[i].function == "einsum") after[i] = true;
    }
    return chained;
  };
  const Recipe small = Shrinker(first_that(fails), fails).run();
  EXPECT_TRUE(fails(small));
  EXPECT_EQ(count_of(small, "einsum"), 1);
  EXPECT_EQ(count_of(small, "mean"), 1);
  EXPECT_LE(small.steps.size(), 7u);
}

TEST(Shrinker, ThinsMeshAndLayout) {
  Recipe recipe = generate(3);
  recipe.mesh = "p:2 q:2 r:2";
  recipe.layout = "a:p+q b:r c:q";
  const Fails fails = [](const Recipe& r) {
    return r.layout.find("a:") != std::string::npos && r.layout.find('q') != std::string::npos;
  };
  const Recipe small = Shrinker(recipe, fails).run();
  EXPECT_EQ(small.mesh, "q:2");
  EXPECT_EQ(small.layout, "a:q");
}

TEST(Shrinker, StopsWhenItsBudgetIsSpent) {
  int asked = 0;
  Shrinker(
      generate(5), [&](const Recipe&) { return ++asked < 0; }, 3)
      .run();
  EXPECT_EQ(asked, 3);
}

// One of each kind of argument and of end. Its C++ is the file emitted_sample_test.cc beside this one, which is compiled
// and run with the other tests.
Recipe sample_recipe() {
  Recipe recipe;
  const Dim a{"a", 12}, d{"d", 4};
  recipe.seed = 42;
  recipe.steps = {
      {"input", {std::string("x0"), Shape{a, d}, DType::kF32, -1.5, 1.5, false, std::int64_t{11}}},
      {"input", {std::string("x1"), Shape{a}, DType::kI32, -1.0, 4.0, true, std::int64_t{12}}},
      {"variable", {std::string("w2"), Shape{d}, -1.0, 1.0}},
      {"variable_whole", {std::string("w3"), Shape{a}, 2.0}},
      {"einsum", {Refs{{0}, {2}}, Shape{a}}},
      {"custom_square", {Ref{4}}},
      {"with_layout", {Ref{5}, std::string("a:-")}},
      {"gather", {Ref{0}, Ref{1}, d}},
      {"cumsum", {Ref{7}, a, true, false}},
      {"split", {Ref{8}, a, std::int64_t{2}, std::int64_t{1}}},
      {"table", {Shape{a}, DType::kF32, -1.0, 1.0, false, std::int64_t{5}}},
      {"multiply", {Ref{6}, Ref{10}}},
      {"mean", {Ref{11}}},
  };
  recipe.outputs = {{6}, {9}};
  recipe.loss = {12};
  recipe.by = {{0}, {2}};
  recipe.trained = {{2}};
  recipe.changes = {{"assign_add", {3}, {1}}};
  recipe.metrics = {{12}};
  recipe.mesh = "p:2 q:2";
  recipe.layout = "a:p d:q";
  return recipe;
}

TEST(EmittedCode, IsWhatIsCheckedIn) {
  const Recipe recipe = sample_recipe();
  const Verdict verdict = check(recipe, Passes::kAll);
  EXPECT_FALSE(verdict.failure) << verdict.failure->detail;
  EXPECT_FALSE(verdict.refused);
  std::ifstream file(WEFT_TEST_DATA "/random/emitted_sample_test.cc");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string emitted = emit(recipe, "nothing", "a sample\nof what is written");
  if (emitted != text.str()) std::ofstream("emitted_sample_test.cc") << emitted;  // to copy, if the change was meant
  EXPECT_EQ(emitted, text.str());
}

// Every function's text has all its arguments in their places.
TEST(EmittedCode, LeavesNoPlaceholder) {
  for (std::uint64_t seed = 1; seed < 200; ++seed)
    for (const Step& step : generate(seed).steps)
      EXPECT_EQ(code_of(step).find("a."), std::string::npos) << code_of(step);
}

}  // namespace
}  // namespace weft::random_graphs::shrink_test
