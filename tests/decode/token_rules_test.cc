// The host's part of the rules of decoding.
#include "train/token_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::decode::token_rules_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TokenRules, FindWhatWouldRepeat) {
  const std::vector<std::int32_t> ids = {4, 5, 6, 4, 5, 7, 4, 5};
  EXPECT_THAT(repeating(ids, 3), ElementsAre(6, 7));
  EXPECT_THAT(repeating(ids, 2), ElementsAre(6, 7));
  EXPECT_THAT(repeating(ids, 1), ElementsAre(4, 5, 6, 4, 5, 7, 4, 5));
  EXPECT_THAT(repeating(ids, 4), IsEmpty());
  EXPECT_THAT(repeating(ids, 8), IsEmpty());
  EXPECT_THAT(repeating(ids, 9), IsEmpty());
  EXPECT_THAT(repeating(ids, 0), IsEmpty());
  const std::vector<std::int32_t> same = {3, 3};
  EXPECT_THAT(repeating(same, 2), ElementsAre(3));
  EXPECT_THAT(repeating({}, 1), IsEmpty());
}

TEST(TokenRules, AreInTheGraphOnlyIfTheyAreAskedFor) {
  const auto offered = [](const Options& options) {
    Graph g;
    const Tensor logits = g.input("logits", {{"batch", 2}, {"beams", 1}, {"vocab", 8}});
    return offer(logits, options, Site::current());
  };
  const CandidateTensors none = offered({.stop_tokens = {3}});
  EXPECT_FALSE(none.seen || none.banned || none.goes_on);
  const CandidateTensors all =
      offered({.max_length = 5, .min_tokens = 2, .repetition_penalty = 2, .no_repeat_ngram = 2});
  EXPECT_EQ(all.seen.shape(), Shape({{"batch", 2}, {"beams", 1}, {"seen", 5}}));
  EXPECT_EQ(all.banned.shape(), Shape({{"batch", 2}, {"beams", 1}, {"banned", 5}}));
  EXPECT_EQ(all.goes_on.shape(), Shape({{"batch", 2}, {"beams", 1}}));
}

// A slot without a row, and a row without tokens.
TEST(TokenRules, FeedTheTokensOfEachBeam) {
  Graph g;
  const Options options{.max_length = 4, .min_tokens = 1, .repetition_penalty = 2, .no_repeat_ngram = 1};
  const CandidateTensors offered =
      offer(g.input("logits", {{"batch", 3}, {"beams", 1}, {"vocab", 8}}), options, Site::current());
  const std::vector<std::int32_t> prompt = {5, 6}, empty;
  const auto begun = make_search(options, 4), fresh = make_search(options, 4);
  const std::vector<std::int32_t> id = {7};
  const std::vector<double> log = {-1};
  begun->take({id, log});
  const std::vector<RowSoFar> rows = {{}, {&prompt, begun.get()}, {&empty, fresh.get()}};
  Feeds feeds;
  add_rule_feeds(offered, options, rows, feeds);
  ASSERT_EQ(feeds.size(), 3u);
  const std::vector<double> lists = {-1, -1, -1, -1, 5, 6, 7, -1, -1, -1, -1, -1};
  EXPECT_EQ(feeds[0].second.values(), lists);
  EXPECT_EQ(feeds[1].second.values(), lists);
  EXPECT_THAT(feeds[2].second.values(), ElementsAre(0, 0, 1));
}

}  // namespace
}  // namespace weft::decode::token_rules_test
