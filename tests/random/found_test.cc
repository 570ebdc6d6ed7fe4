// Graphs that failed once, cut down: on one processor and on every mesh they must give the judge's numbers.
#include <gtest/gtest.h>

#include "check.h"

namespace weft::random_graphs::found_test {
namespace {

const Dim kA{"a", 12}, kB{"b", 24}, kC{"c", 6};

Step input(const std::string& name, const Shape& shape, DType dtype, double low, double high) {
  return {"input", {name, shape, dtype, low, high, !is_float(dtype), std::int64_t{3}}};
}

void expect_sound(Recipe recipe, const std::vector<std::pair<std::string, std::string>>& layouts) {
  for (const auto& [mesh, layout] : layouts) {
    recipe.mesh = mesh;
    recipe.layout = layout;
    const Verdict verdict = check(recipe, Passes::kAll);
    EXPECT_FALSE(verdict.failure) << "mesh " << mesh << ", layout \"" << layout << "\": " << verdict.failure->kind
                                  << "\n"
                                  << verdict.failure->detail;
    EXPECT_FALSE(verdict.refused) << layout;
  }
}

// A tensor that is two of three factors took its dims with it when the first of them was multiplied.
TEST(FoundGraphs, OneTensorIsSeveralFactors) {
  Recipe recipe;
  recipe.steps = {input("x", {kA, kC}, DType::kF32, -1, 1),         input("y", {kA, kB}, DType::kF32, -1, 1),
                  {"einsum", {Refs{{0}, {0}, {1}}, Shape{kC}}},     {"einsum", {Refs{{0}, {1}, {0}, {0}}, Shape{}}},
                  {"einsum", {Refs{{1}, {1}, {1}}, Shape{kA, kC}}}, {"reduce_sum", {Ref{2}}}};
  recipe.outputs = {{2}, {3}, {4}};
  recipe.loss = {5};
  recipe.by = {{0}, {1}};
  expect_sound(recipe, {{"p:2", "a:p"}, {"p:2", "c:p"}, {"p:2 q:3", "a:q b:p"}, {"p:2 q:2", "a:p+q"}});
}

// A sum of bytes wraps: widened while it was still pending, it did not.
TEST(FoundGraphs, ASumOfBytesIsDoneBeforeItIsWidened) {
  for (DType wide : {DType::kI64, DType::kI32, DType::kF32}) {
    Recipe recipe;
    recipe.steps = {input("x", {kA, kB}, DType::kU8, 90, 110),
                    {"reduce_sum_dims", {Ref{0}, Shape{kA}}},
                    {"cast", {Ref{1}, wide}},
                    {"reduce_sum", {Ref{2}}}};
    recipe.outputs = {{3}};
    expect_sound(recipe, {{"p:2", "a:p"}, {"p:2 q:2", "a:p b:q"}, {"p:3", "a:p"}});
  }
}

// Carried values were handed on one after another, so that a later one read what an earlier one had become.
TEST(FoundGraphs, CarriedValuesChangePlacesAtOnce) {
  for (const char* function : {"loop_swap", "loop_doubled", "loop_chain", "loop_outside"}) {
    Recipe recipe;
    recipe.steps = {input("x", {kA, kC}, DType::kF32, -1, 1),
                    input("y", {kA, kC}, DType::kF32, -1, 1),
                    {function, {Ref{0}, Ref{1}, std::int64_t{3}}},
                    {"square", {Ref{2}}},
                    {"mean", {Ref{3}}}};
    recipe.outputs = {{2}};
    recipe.loss = {4};
    recipe.by = {{0}, {1}};
    expect_sound(recipe, {{"p:2", "a:p"}, {"p:2 q:2", "a:p c:q"}});
  }
}

// Second derivatives through a loop lost what goes by the values that were kept of each trip.
TEST(FoundGraphs, SecondDerivativesGoThroughLoops) {
  Recipe recipe;
  recipe.steps = {
      input("x", {kC}, DType::kF32, -1, 1), {"loop_squares", {Ref{0}, std::int64_t{3}}}, {"mean", {Ref{1}}}};
  recipe.outputs = {{1}};
  recipe.loss = {2};
  recipe.by = {{0}};
  recipe.second = true;
  expect_sound(recipe, {{"p:2", "c:p"}});
}

// A region that returned an outside tensor had no derivative by it.
TEST(FoundGraphs, RegionsReturnOutsideTensors) {
  for (const char* function : {"recompute_outside", "recompute_twice", "reversible_outside"}) {
    Recipe recipe;
    recipe.steps = {input("x", {kA}, DType::kF32, -1, 1),
                    input("w", {kA}, DType::kF32, -1, 1),
                    {function, {Ref{0}, Ref{1}}},
                    {"square", {Ref{2}}},
                    {"mean", {Ref{3}}}};
    recipe.outputs = {{2}};
    recipe.loss = {4};
    recipe.by = {{0}, {1}};
    expect_sound(recipe, {{"p:2", "a:p"}});
  }
}

// A pending minimum was taken past a product that wraps.
TEST(FoundGraphs, APendingMinimumStaysBeforeWhatWraps) {
  Recipe recipe;
  recipe.steps = {input("x", {kA, kC}, DType::kU32, 0, 4294967295.0),
                  {"reduce_min_dims", {Ref{0}, Shape{kA}}},
                  {"scale", {Ref{1}, 45.0}},
                  {"reduce_min_dims", {Ref{2}, Shape{kC}}}};
  recipe.outputs = {{3}};
  expect_sound(recipe, {{"p:2", "a:p"}, {"p:3", "a:p"}, {"p:2 q:2", "a:p+q"}});
}

// XLA's CPU compiler read behind the end of an operand that was padded by a negative number.
TEST(FoundGraphs, AScanReadsNothingBehindItsOperand) {
  Recipe recipe;
  recipe.wide = true;
  recipe.steps = {{"input", {std::string("x"), Shape{kB, {"d", 4}}, DType::kF32, -1.5, 1.5, false, std::int64_t{443}}},
                  {"cumsum", {Ref{0}, kB, true, true}}};
  recipe.outputs = {{1}};
  for (int i = 0; i < 5; ++i) expect_sound(recipe, {{"r:2", "b:r"}});
}

// XLA's CPU compiler lost NaN in a maximum.
TEST(FoundGraphs, AMaximumKeepsNan) {
  Recipe recipe;
  recipe.wide = false;
  recipe.kind = "extreme";
  recipe.steps = {
      {"input_extreme", {std::string("x"), Shape{kA, kB}, DType::kF32, -3.0, 3.0, false, std::int64_t{853}}},
      {"reduce_max_dims", {Ref{0}, Shape{kB}}},
      {"scale", {Ref{1}, 0.0}},
      {"reduce_max", {Ref{2}}}};
  recipe.outputs = {{3}};
  expect_sound(recipe, {{"", ""}});
}

}  // namespace
}  // namespace weft::random_graphs::found_test
