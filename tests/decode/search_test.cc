// The searches of one row, on candidates written by hand.
#include "train/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace weft::decode::search_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Gives each beam the log probabilities of `table(prefix)` and lets the search go on until it is done or full.
using Table = std::function<std::vector<double>(const std::vector<std::int32_t>& prefix)>;

struct Walk {
  std::int64_t steps = 0;
  std::vector<Hypothesis> result;
};

Walk walk(const Options& options, const Table& probabilities) {
  const auto search = make_search(options, options.max_length);
  std::vector<std::vector<std::int32_t>> prefixes(static_cast<std::size_t>(options.beams));
  Walk walk;
  while (walk.steps < options.max_length && !search->is_done()) {
    std::vector<std::int32_t> ids;
    std::vector<double> logs;
    for (const auto& prefix : prefixes) {
      const std::vector<double> p = probabilities(prefix);
      std::vector<std::int32_t> order(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) order[i] = static_cast<std::int32_t>(i);
      const auto at = [&](std::int32_t i) { return p[static_cast<std::size_t>(i)]; };
      std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
      order.resize(options.beams == 1 ? 1 : std::min(order.size(), static_cast<std::size_t>(2 * options.beams)));
      for (std::int32_t id : order) {
        ids.push_back(id);
        logs.push_back(std::log(at(id)));
      }
    }
    search->take({ids, logs});
    auto next = prefixes;
    for (std::size_t b = 0; b < prefixes.size(); ++b) {
      next[b] = prefixes[static_cast<std::size_t>(search->parents()[b])];
      next[b].push_back(search->tokens()[b]);
    }
    prefixes = next;
    ++walk.steps;
  }
  walk.result = search->result();
  return walk;
}

// Tokens 2 and 3, and 1, the end. After a first 2 the ends are unlikely, after a first 3 the end is nearly sure: the
// greedy choice is 2, the likeliest sequence is 3.
std::vector<double> trap(const std::vector<std::int32_t>& prefix) {
  if (prefix.empty()) return {1e-9, 0.1, 0.5, 0.4};
  if (prefix[0] == 2) return {1e-9, 0.2, 0.4, 0.4};
  return {1e-9, 0.98, 0.01, 0.01};
}

TEST(Search, GreedyTakesWhatComes) {
  const Walk greedy = walk({.max_length = 5}, trap);
  EXPECT_EQ(greedy.steps, 5);
  ASSERT_EQ(greedy.result.size(), 1u);
  EXPECT_THAT(greedy.result[0].ids, ElementsAre(2, 2, 2, 2, 2));
  EXPECT_FALSE(greedy.result[0].ended);
  EXPECT_NEAR(greedy.result[0].score, std::log(0.5) + 4 * std::log(0.4), 1e-12);
}

TEST(Search, GreedyStopsAtTheEnd) {
  const auto ends_third = [](const std::vector<std::int32_t>& prefix) {
    return prefix.size() < 2 ? std::vector<double>{0.1, 0.2, 0.7} : std::vector<double>{0.1, 0.6, 0.3};
  };
  const Walk greedy = walk({.max_length = 9}, ends_third);
  EXPECT_EQ(greedy.steps, 3);
  EXPECT_THAT(greedy.result[0].ids, ElementsAre(2, 2));
  EXPECT_TRUE(greedy.result[0].ended);
  EXPECT_NEAR(greedy.result[0].score, 2 * std::log(0.7) + std::log(0.6), 1e-12);
}

double penalty(double tokens, double alpha) { return std::pow((5 + tokens) / 6, alpha); }

TEST(Search, BeamsFindTheLikelierSequence) {
  const Walk beam = walk({.max_length = 6, .beams = 2}, trap);
  ASSERT_EQ(beam.result.size(), 1u);
  EXPECT_THAT(beam.result[0].ids, ElementsAre(3));
  EXPECT_TRUE(beam.result[0].ended);
  EXPECT_NEAR(beam.result[0].score, std::log(0.4 * 0.98) / penalty(2, 0.6), 1e-12);
  EXPECT_LT(beam.steps, 6);
}

TEST(Search, WithoutEarlyStopItRunsToTheEndAndFindsTheSameBest) {
  const Walk beam = walk({.max_length = 6, .beams = 2, .early_stop = false, .n_best = 2}, trap);
  EXPECT_EQ(beam.steps, 6);
  ASSERT_EQ(beam.result.size(), 2u);
  EXPECT_THAT(beam.result[0].ids, ElementsAre(3));
  EXPECT_GE(beam.result[0].score, beam.result[1].score);
}

TEST(Search, AlphaFavoursLongSequences) {
  // Each token has probability 0.8; the end comes with 0.2, or surely after four.
  const auto geometric = [](const std::vector<std::int32_t>& prefix) {
    return prefix.size() < 4 ? std::vector<double>{1e-12, 0.3, 0.7} : std::vector<double>{1e-12, 1.0, 1e-12};
  };
  const Walk none = walk({.max_length = 8, .beams = 2, .alpha = 0, .early_stop = false}, geometric);
  EXPECT_THAT(none.result[0].ids, IsEmpty());  // 0.3 against 0.7^4 = 0.24
  const Walk much = walk({.max_length = 8, .beams = 2, .alpha = 1, .early_stop = false}, geometric);
  EXPECT_THAT(much.result[0].ids, ElementsAre(2, 2, 2, 2));
  EXPECT_NEAR(much.result[0].score, 4 * std::log(0.7) / penalty(5, 1), 1e-9);
}

TEST(Search, BeamsThatNeverEndAreGivenAlive) {
  const auto endless = [](const std::vector<std::int32_t>&) {
    return std::vector<double>{0.1, 1e-30, 0.5, 0.2, 0.1, 0.1};
  };
  const Walk beam = walk({.max_length = 2, .beams = 2, .n_best = 2}, endless);
  ASSERT_EQ(beam.result.size(), 2u);
  EXPECT_THAT(beam.result[0].ids, ElementsAre(2, 2));
  EXPECT_THAT(beam.result[1].ids, ElementsAre(2, 3));  // of equals the one that went on from the better beam
  EXPECT_FALSE(beam.result[0].ended);
  EXPECT_NEAR(beam.result[0].score, 2 * std::log(0.5), 1e-12);  // log p itself
}

TEST(Search, StopTokensEndLikeTheEnd) {
  const Walk greedy = walk({.max_length = 5, .stop_tokens = {2}}, trap);
  EXPECT_EQ(greedy.steps, 1);
  EXPECT_THAT(greedy.result[0].ids, IsEmpty());
  EXPECT_EQ(greedy.result[0].end_token, 2);
  EXPECT_THAT(greedy.result[0].log_probabilities, ElementsAre(std::log(0.5)));
  const Walk beam = walk({.max_length = 5, .beams = 2, .early_stop = false, .n_best = 2, .stop_tokens = {2}}, trap);
  ASSERT_EQ(beam.result.size(), 2u);
  EXPECT_THAT(beam.result[0].ids, IsEmpty());
  EXPECT_EQ(beam.result[0].end_token, 2);
  EXPECT_THAT(beam.result[1].ids, ElementsAre(3));
  EXPECT_EQ(beam.result[1].end_token, 1);
  EXPECT_THAT(beam.result[1].log_probabilities, ElementsAre(std::log(0.4), std::log(0.98)));
}

TEST(Search, EveryBeamGoesOnBesideAllItsEnds) {
  EXPECT_EQ(candidate_count({.stop_tokens = {7}}), 1);
  EXPECT_EQ(candidate_count({.beams = 4}), 8);
  EXPECT_EQ(candidate_count({.beams = 4, .stop_tokens = {7, 1, 7, 9}}), 16);
}

TEST(Search, SeveralBestAreDifferentAndInOrder) {
  const Walk beam = walk({.max_length = 5, .beams = 4, .early_stop = false, .n_best = 3}, trap);
  ASSERT_EQ(beam.result.size(), 3u);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_GE(beam.result[i - 1].score, beam.result[i].score);
    EXPECT_NE(beam.result[i - 1].ids, beam.result[i].ids);
  }
}

}  // namespace
}  // namespace weft::decode::search_test
