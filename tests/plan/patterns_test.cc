// Prices of patterns against programs that are compiled for each candidate by itself.
#include "plan/patterns.h"

#include <cmath>

#include "plan/families.h"

namespace weft::search_test {
namespace {

struct PatternCase {
  const char* name;
  StepFamily (*family)();
  const char* machine;
  int processors;
};

std::ostream& operator<<(std::ostream& out, const PatternCase& c) { return out << c.name; }

class PlanPatterns : public ::testing::TestWithParam<PatternCase> {};

void expect_equal(const Prediction& got, const Prediction& want) {
  EXPECT_NEAR(got.seconds, want.seconds, want.seconds * 1e-9);
  EXPECT_NEAR(got.compute, want.compute, want.seconds * 1e-9);
  EXPECT_NEAR(got.exposed, want.exposed, want.seconds * 1e-9);
  EXPECT_NEAR(got.wire, want.wire, want.seconds * 1e-9);
  EXPECT_NEAR(got.flops, want.flops, want.flops * 1e-9);
  EXPECT_EQ(got.variable_bytes, want.variable_bytes);
  // The arena rounds each value up.
  EXPECT_NEAR(static_cast<double>(got.arena_bytes), static_cast<double>(want.arena_bytes),
              0.02 * static_cast<double>(want.arena_bytes) + 4096);
}

// On its own mesh, a program costs what Pricer says.
TEST_P(PlanPatterns, OwnMeshCostsWhatThePricerSays) {
  const PatternCase c = GetParam();
  Bench bench(c.family(), c.machine, c.processors);
  Patterns::Facts facts = bench.pattern_facts();
  facts.own_mesh = true;
  Patterns own(facts);
  int count = 0;
  for (const Choice& choice : all_choices(bench, 2)) {
    if (++count % 7 != 0) continue;  // to save time
    const std::optional<Price> price = own.price(choice);
    if (!price) continue;
    const PlanChoice named = weft::named(choice, bench.rules, bench.family.batch);
    SCOPED_TRACE(named.text());
    expect_equal(price->predicted, bench.predictor.folded(named, 0));
  }
}

// A candidate that shares the program of another mesh costs nearly what its own program costs, and has a price if the
// partitioner accepts it.
TEST_P(PlanPatterns, AnotherMeshCostsNearlyWhatItsOwnProgramCosts) {
  const PatternCase c = GetParam();
  Bench bench(c.family(), c.machine, c.processors);
  Patterns::Facts facts = bench.pattern_facts();
  Patterns shared(facts);
  facts.own_mesh = true;
  Patterns own(facts);
  int count = 0, worse = 0, all = 0;
  for (const Choice& choice : all_choices(bench, 2)) {
    if (choice.axes.size() < 2 || ++count % 5 != 0) continue;
    const std::optional<Price> a = shared.price(choice), b = own.price(choice);
    SCOPED_TRACE(weft::named(choice, bench.rules, bench.family.batch).text());
    ASSERT_EQ(a.has_value(), b.has_value());
    if (!a) continue;
    ++all;
    EXPECT_EQ(a->predicted.variable_bytes, b->predicted.variable_bytes);
    const double error = std::abs(a->predicted.seconds / b->predicted.seconds - 1);
    EXPECT_LE(error, 0.1);
    worse += error > 0.01;
  }
  EXPECT_LE(worse, all / 20);
}

INSTANTIATE_TEST_SUITE_P(Graphs, PlanPatterns,
                         ::testing::Values(PatternCase{"perceptron",
                                                       [] {
                                                         return perceptron({64, 32, 64}, 2);
                                                       },
                                                       kLevels, 8},
                                           PatternCase{"caches",
                                                       [] {
                                                         return perceptron({64, 32, 64}, 1, {1, 2});
                                                       },
                                                       kCaches, 8},
                                           PatternCase{"recurrence", recurrence, kFlat, 8},
                                           PatternCase{"experts", experts, kLevels, 8}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft::search_test
