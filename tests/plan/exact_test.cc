// The search against brute force: every assignment of dims to axes, compiled and priced, whether the search would refuse
// it early or not.
#include <limits>

#include "plan/families.h"

namespace weft::search_test {
namespace {

// Pairs of processors that compute nothing while they wait for others.
constexpr const char* kSerial = R"(
processors = 8
overlap = false
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-7
pointwise = 1e10
random = 1e8
[[link]]
name = "pair"
topology = "switch"
sides = [2]
latency = 1e-7
bandwidth = 2e10
[[link]]
name = "net"
topology = "torus"
sides = [2, 2]
latency = 1e-6
bandwidth = 1e9
)";

// As kSerial, with caches and measured collectives.
constexpr const char* kMeasured = R"(
processors = 8
overlap = false
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e11
[[rates]]
overhead = 1e-7
pointwise = 1e10
random = 1e8
[rates.sweep]
bytes = [1e4, 1e6]
rate = [4e10, 1e10]
[[link]]
name = "box"
topology = "switch"
sides = [8]
latency = 1e-6
bandwidth = 1e9
[[collective]]
kind = "all_reduce"
processors = [2, 8]
bytes = [1e2, 1e4, 1e6]
seconds = [2e-6, 5e-6, 1e-3, 6e-6, 1e-5, 2e-3]
[[collective]]
kind = "all_gather"
processors = [2, 8]
bytes = [1e2, 1e4, 1e6]
seconds = [1e-6, 3e-6, 6e-4, 4e-6, 8e-6, 1.2e-3]
)";

// Collectives cost next to nothing beside memory.
constexpr const char* kFastWire = R"(
processors = 8
memory = "1GB"
bytes_per_second = 1e10
[peak]
f32 = 1e14
[[rates]]
overhead = 0
pointwise = 1e14
random = 1e14
[[link]]
name = "box"
topology = "switch"
sides = [8]
latency = 1e-9
bandwidth = 1e13
)";

struct ExactCase {
  const char* name;
  StepFamily (*family)();
  const char* machine;
  int processors;
  int most_axes = 2;
};

std::ostream& operator<<(std::ostream& out, const ExactCase& c) { return out << c.name; }

struct Candidate {
  Choice choice;
  Price price;
};

// The candidates of a layout that the partitioner refuses are refused too.
std::vector<Candidate> brute_force(const Bench& bench, Patterns& patterns, int most_axes) {
  std::vector<Candidate> all;
  std::vector<AxisRole> refused;
  const int batch = bench.rules.find(bench.family.batch);
  for (const Choice& choice : all_choices(bench, most_axes)) {
    if (!choice.axes.empty() && choice.axes == refused) continue;
    if (choice.microbatches > 1 && !divides(bench.rules, choice.axes, batch, choice.microbatches)) continue;
    if (const std::optional<Price> price = patterns.price(choice)) all.push_back({choice, *price});
    else if (choice.level == 0 && choice.microbatches == 1) refused = choice.axes;
  }
  return all;
}

double best_of(const Bench& bench, const std::vector<Candidate>& all, std::int64_t memory) {
  double best = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : all) {
    const Prediction& p = candidate.price.predicted;
    if (p.bytes() <= memory) best = std::min(best, p.seconds);
    if (p.bytes() <= memory || candidate.choice.recompute != Recompute::kNone) continue;
    if (bench.bound.variable_bytes(candidate.choice) > static_cast<double>(memory)) continue;
    PlanChoice named = weft::named(candidate.choice, bench.rules, bench.family.batch);
    named.recompute = Recompute::kCompiler;
    try {
      const Prediction smaller = bench.predictor.folded(named, memory);
      if (smaller.bytes() <= memory) best = std::min(best, smaller.seconds);
    } catch (const UserError&) {
    }
  }
  return best;
}

class PlanExact : public ::testing::TestWithParam<ExactCase> {};

TEST_P(PlanExact, FindsWhatBruteForceFinds) {
  const ExactCase c = GetParam();
  Bench bench(c.family(), c.machine, c.processors);
  Patterns patterns(bench.pattern_facts());
  const std::vector<Candidate> all = brute_force(bench, patterns, c.most_axes);
  ASSERT_FALSE(all.empty());
  std::vector<std::int64_t> bytes;
  for (const Candidate& candidate : all) bytes.push_back(candidate.price.predicted.bytes());
  std::ranges::sort(bytes);
  Search search(bench.facts());
  for (const std::int64_t memory : {bytes.front() - 1, bytes.front(), bytes[bytes.size() / 8], bytes.back()}) {
    const Found found = search.run(bench.demands(memory, c.most_axes), 3, {});
    const double best = best_of(bench, all, memory);
    SCOPED_TRACE(memory);
    ASSERT_EQ(found.best.empty(), best == std::numeric_limits<double>::infinity());
    EXPECT_TRUE(found.failures.empty());
    if (found.best.empty()) continue;
    EXPECT_NEAR(found.best.front().value, best, best * 1e-9) << search.named(found.best.front()).text();
    EXPECT_NEAR(found.bound, best, best * 1e-9);
  }
  const Found smallest = search.run(bench.demands(bytes.back(), c.most_axes, Objective::kMemory), 1, {});
  ASSERT_FALSE(smallest.best.empty());
  EXPECT_EQ(smallest.best.front().predicted.bytes(), bytes.front());
}

// Every bound that the search prunes by, against the price.
TEST_P(PlanExact, BoundsAreBelowPrices) {
  const ExactCase c = GetParam();
  Bench bench(c.family(), c.machine, c.processors);
  Patterns patterns(bench.pattern_facts());
  if (c.family == recurrence) GTEST_SKIP() << "the search has no bounds for graphs with loops";
  const bool caches_matter = !bench.machine.rates_of(c.processors).sweep.axes.empty();
  constexpr double kRounding = 1 + 1e-9;
  for (const Candidate& candidate : brute_force(bench, patterns, c.most_axes)) {
    const Choice& choice = candidate.choice;
    SCOPED_TRACE(weft::named(choice, bench.rules, bench.family.batch).text());
    const MeshGroups groups(bench.machine, sizes_of(choice.axes));
    const double seconds = candidate.price.predicted.seconds * kRounding;
    EXPECT_LE(bench.bound.seconds(choice, groups, false), seconds);
    EXPECT_LE(bench.bound.seconds(choice, groups, true) + bench.bound.update_seconds(choice, groups, true), seconds);
    EXPECT_LE(bench.bound.variable_bytes(choice), static_cast<double>(candidate.price.predicted.variable_bytes) + 0.5);
    double after = 1;
    for (std::size_t i = choice.axes.size(); i-- > 0; after *= choice.axes[i].size)
      EXPECT_LE(bench.bound.of_prefix(std::span(choice.axes).first(i + 1), after), seconds);
    Choice plain{.axes = choice.axes};
    const Price layout = *patterns.price(plain);
    const double update = caches_matter ? 0 : patterns.update_seconds(plain)[choice.stored];
    EXPECT_LE(layout.floor + update + bench.bound.gather_seconds(choice, groups), seconds);
    if (caches_matter) continue;
    plain.stored = choice.stored;
    plain.level = choice.level == 2 ? 1 : choice.level;
    EXPECT_LE(patterns.price(plain)->predicted.seconds, seconds) << "more microbatches, or layers again, are faster";
    plain.level = choice.level;
    plain.microbatches = choice.microbatches;
    EXPECT_LE(patterns.price(plain)->predicted.seconds, seconds) << "layers again are faster";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Graphs, PlanExact,
    ::testing::Values(ExactCase{"one_layer",
                                [] {
                                  return perceptron({8, 16, 32}, 1);
                                },
                                kFlat, 4},
                      ExactCase{"three_layers",
                                [] {
                                  return perceptron({8, 16, 32}, 3);
                                },
                                kFlat, 4},
                      ExactCase{"large_batch",
                                [] {
                                  return perceptron({512, 64, 64}, 2);
                                },
                                kFlat, 4},
                      ExactCase{"wide",
                                [] {
                                  return perceptron({4, 64, 256}, 4);
                                },
                                kFlat, 4},
                      ExactCase{"two_levels",
                                [] {
                                  return perceptron({8, 16, 32}, 2);
                                },
                                kLevels, 4},
                      ExactCase{"large_batch_on_levels",
                                [] {
                                  return perceptron({512, 64, 64}, 3);
                                },
                                kLevels, 4},
                      ExactCase{"wide_on_levels",
                                [] {
                                  return perceptron({4, 64, 256}, 2);
                                },
                                kLevels, 4},
                      ExactCase{"six",
                                [] {
                                  return perceptron({6, 12, 24}, 2);
                                },
                                kFlat, 6},
                      ExactCase{"prime",
                                [] {
                                  return perceptron({15, 30, 45}, 2);
                                },
                                kFlat, 3},
                      ExactCase{"eight_on_levels",
                                [] {
                                  return perceptron({64, 64, 64}, 1);
                                },
                                kLevels, 8},
                      ExactCase{"two",
                                [] {
                                  return perceptron({10, 14, 6}, 2);
                                },
                                kFlat, 2},
                      ExactCase{"three_axes",
                                [] {
                                  return perceptron({64, 16, 32}, 1);
                                },
                                kLevels, 8, 3},
                      ExactCase{"caches",
                                [] {
                                  return perceptron({64, 32, 64}, 2);
                                },
                                kCaches, 4},
                      ExactCase{"microbatches",
                                [] {
                                  return perceptron({16, 32, 64}, 2, {1, 2, 4}, true);
                                },
                                kFlat, 4},
                      ExactCase{"microbatches_on_levels",
                                [] {
                                  return perceptron({64, 16, 16}, 1, {1, 2, 4}, true);
                                },
                                kLevels, 4},
                      ExactCase{"microbatches_and_caches",
                                [] {
                                  return perceptron({64, 16, 32}, 1, {1, 2}, true);
                                },
                                kCaches, 4},
                      ExactCase{"attention", [] { return attention(2); }, kFlat, 2},
                      ExactCase{"attention_on_levels", [] { return attention(1); }, kLevels, 4},
                      ExactCase{"rounded", rounded, kFastWire, 4}, ExactCase{"rounded_on_eight", rounded, kFastWire, 8},
                      ExactCase{"words", words, kFlat, 4}, ExactCase{"words_on_levels", words, kLevels, 4},
                      ExactCase{"experts", experts, kFlat, 4},
                      ExactCase{"serial",
                                [] {
                                  return perceptron({8, 16, 32}, 3);
                                },
                                kSerial, 4},
                      ExactCase{"large_batch_serial",
                                [] {
                                  return perceptron({512, 64, 64}, 2);
                                },
                                kSerial, 4},
                      ExactCase{"wide_serial",
                                [] {
                                  return perceptron({4, 64, 256}, 4);
                                },
                                kSerial, 8},
                      ExactCase{"three_axes_serial",
                                [] {
                                  return perceptron({64, 16, 32}, 2);
                                },
                                kSerial, 8, 3},
                      ExactCase{"microbatches_serial",
                                [] {
                                  return perceptron({64, 32, 64}, 2, {1, 2, 4}, true);
                                },
                                kSerial, 4},
                      ExactCase{"microbatches_of_three",
                                [] {
                                  return perceptron({36, 12, 24}, 2, {1, 3}, true);
                                },
                                kFlat, 6},
                      ExactCase{"attention_serial", [] { return attention(2); }, kSerial, 4},
                      ExactCase{"words_serial", words, kSerial, 4}, ExactCase{"experts_serial", experts, kSerial, 4},
                      ExactCase{"measured",
                                [] {
                                  return perceptron({64, 32, 64}, 2);
                                },
                                kMeasured, 4},
                      ExactCase{"microbatches_measured",
                                [] {
                                  return perceptron({64, 16, 32}, 2, {1, 2}, true);
                                },
                                kMeasured, 4},
                      ExactCase{"recurrence", recurrence, kLevels, 4}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace weft::search_test
