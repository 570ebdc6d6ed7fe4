// The generator: what a seed gives, that it draws on all functions, and that the comparison sees small differences.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "check.h"
#include "emit.h"
#include "generate.h"
#include "run.h"

namespace weft::random_graphs::recipes_test {
namespace {

TEST(RandomRecipes, ComeFromTheSeedAlone) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) EXPECT_EQ(emit(generate(seed), "", ""), emit(generate(seed), "", ""));
  EXPECT_NE(emit(generate(1), "", ""), emit(generate(2), "", ""));
}

// Whether a fault in the numbers would be seen: a graph is compared with its neighbour, which adds 1e-6 to one tensor.
TEST(RandomRecipes, ASmallDifferenceIsSeen) {
  Recipe recipe;
  const Shape shape{{"a", 12}};
  struct Width {
    bool wide;
    DType dtype;
    double seen;
  };
  for (const auto& [wide, dtype, seen] :
       {Width{true, DType::kF32, 2e-6}, Width{false, DType::kF32, 3e-5}, Width{false, DType::kBF16, 0.1}}) {
    recipe.steps = {{"input", {std::string("x"), shape, dtype, -1.0, 1.0, false, std::int64_t{1}}},
                    {"add_number", {Ref{0}, 1e-6}},
                    {"reduce_sum", {Ref{1}}}};
    recipe.outputs = {{2}};
    recipe.wide = wide;
    const Wanted want = truth_of(build(recipe), conditions_of(recipe), false).want;
    const auto ran = [&](double number) {
      recipe.steps[1].args[1] = number;
      const Built built = build(recipe);
      Compiled one = compile(built, wide, Mesh(), "", {}, device::cpu());
      return run(one, built, wide);
    };
    EXPECT_FALSE(difference(ran(1e-6), want, {wide}));
    EXPECT_TRUE(difference(ran(seen), want, {wide})) << weft::name_of(dtype);
  }
}

// Floats take turns too: at least a fifth of the graphs is in bf16, and differentiated like the others.
TEST(RandomRecipes, AreInAllArithmetics) {
  int wide = 0, plain = 0, narrow = 0, differentiated = 0;
  for (std::uint64_t seed = 1; seed <= 210; ++seed) {
    const Recipe recipe = generate(seed);
    ++(recipe.wide ? wide : recipe.narrow ? narrow : plain);
    if (!recipe.narrow) continue;
    const Built built = build(recipe);
    differentiated += !built.differentiated.empty();
    bool has_narrow = false;
    for (const Tensor& x : built.values) has_narrow = has_narrow || x.dtype() == DType::kBF16;
    EXPECT_TRUE(has_narrow) << seed;
  }
  EXPECT_EQ(wide, 70);
  EXPECT_EQ(plain, 90);
  EXPECT_EQ(narrow, 50);
  EXPECT_GT(differentiated, 40);
}

// Kinds take turns, each draws all of its own functions, and whole numbers have every dtype.
TEST(RandomRecipes, AreOfAllKinds) {
  std::map<std::string, int> graphs, calls, dtypes;
  for (std::uint64_t seed = 1; seed <= 4200; ++seed) {
    const Recipe recipe = generate(seed);
    ++graphs[recipe.kind];
    for (const Step& step : recipe.steps) ++calls[step.function];
    if (recipe.kind != "whole") continue;
    for (const Tensor& x : build(recipe).values) ++dtypes[std::string(weft::name_of(x.dtype()))];
  }
  for (const std::string& kind : kinds()) EXPECT_EQ(graphs[kind], 600) << kind;
  for (const auto& [function, call] : all_calls()) EXPECT_GT(calls[function], 0) << function << " was never drawn";
  for (const char* dtype : {"i32", "i64", "u32", "u8", "bool"}) EXPECT_GT(dtypes[dtype], 400) << dtype;
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
    Generator gen = grown(seed, 8);
    for (int v = 0; v < gen.count(); ++v) gen.recipe.outputs.push_back({v});
    const Truth truth = truth_of(build(gen.recipe), conditions_of(gen.recipe), false);
    ASSERT_FALSE(truth.failure) << truth.failure->detail;
    for (int v = 0; v < gen.count(); ++v) {
      const judge::Value& value = truth.want[static_cast<std::size_t>(v)].second;
      const double slack = 1e-6 + 1e-6 * gen.bound(v);
      std::vector<double> numbers = value.f;
      numbers.insert(numbers.end(), value.i.begin(), value.i.end());
      for (double x : numbers) {
        ASSERT_GE(x, gen.info(v).low - slack)
            << "seed " << seed << ", " << code_of(gen.recipe.steps[static_cast<std::size_t>(v)]);
        ASSERT_LE(x, gen.info(v).high + slack)
            << "seed " << seed << ", " << code_of(gen.recipe.steps[static_cast<std::size_t>(v)]);
      }
    }
  }
}

}  // namespace
}  // namespace weft::random_graphs::recipes_test
