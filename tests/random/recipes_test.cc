// The generator: what a seed gives, that it draws on all functions, and that the comparison sees small differences.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "check.h"
#include "emit.h"
#include "generate.h"

namespace weft::random_graphs {
namespace {

TEST(RandomRecipes, ComeFromTheSeedAlone) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) EXPECT_EQ(emit(generate(seed), "", ""), emit(generate(seed), "", ""));
  EXPECT_NE(emit(generate(1), "", ""), emit(generate(2), "", ""));
}

// Whether a fault in the numbers would be seen: a graph is compared with its neighbour, which adds 1e-6 to one tensor.
TEST(RandomRecipes, ASmallDifferenceIsSeen) {
  Recipe recipe;
  const Shape shape{{"a", 12}};
  recipe.steps = {{"input", {std::string("x"), shape, DType::kF32, -1.0, 1.0, false, std::int64_t{1}}},
                  {"add_number", {Ref{0}, 1e-6}},
                  {"reduce_sum", {Ref{1}}}};
  recipe.outputs = {{2}};
  const Results want = reference(recipe).want;
  EXPECT_FALSE(difference(want, want));
  recipe.steps[1].args[1] = 2e-6;
  EXPECT_TRUE(difference(reference(recipe).want, want));
}

// Every function of ops.h is called by some step, or is one of the ends of a recipe.
TEST(RandomRecipes, CallEveryFunction) {
  std::string code = "assign( assign_add( assign_sub( scalar_metric(";
  for (const auto& [name, call] : all_calls()) code += " " + call.code;
  std::ifstream header(WEFT_TEST_DATA "/../include/weft/ops.h");
  const std::regex declaration(R"(^(Tensor|Tensors|TopKResult|SortResult|void) ([a-z]\w*)\()");
  int functions = 0;
  for (std::string line; std::getline(header, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, declaration)) continue;
    ++functions;
    EXPECT_TRUE(std::regex_search(code, std::regex("(^|[^a-z_])" + found[2].str() + "\\(")))
        << found[2] << " is never called";
  }
  EXPECT_GT(functions, 100);
}

// Numbers stay where their ranges say they do.
TEST(RandomRecipes, StayWithinTheirRanges) {
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    Generator gen(seed);
    add_inputs(gen);
    add_variables(gen);
    Moves moves = kPointwiseMoves;
    for (const Moves* more : {&kReduceMoves, &kShapeMoves, &kWindowMoves})
      moves.insert(moves.end(), more->begin(), more->end());
    for (int i = 0; i < 8; ++i) make_one(gen, moves);
    for (int v = 0; v < gen.count(); ++v) gen.recipe.outputs.push_back({v});
    const Reference one = reference(gen.recipe);
    ASSERT_FALSE(one.failure) << one.failure->detail;
    for (int v = 0; v < gen.count(); ++v) {
      const auto& [name, array] = one.want[static_cast<std::size_t>(v)];
      const double slack = 1e-6 + 1e-6 * gen.bound(v);
      for (double x : array.values()) {
        ASSERT_GE(x, gen.info(v).low - slack)
            << "seed " << seed << ", " << code_of(gen.recipe.steps[static_cast<std::size_t>(v)]);
        ASSERT_LE(x, gen.info(v).high + slack)
            << "seed " << seed << ", " << code_of(gen.recipe.steps[static_cast<std::size_t>(v)]);
      }
    }
  }
}

}  // namespace
}  // namespace weft::random_graphs
