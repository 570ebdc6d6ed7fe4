#include <gtest/gtest.h>

#include "weft/evaluate.h"

namespace weft::evaluate::scores_test {
namespace {

const Dim kBatch{"batch", 2}, kLength{"length", 6};

Array of_rows(const std::vector<double>& values) { return Array({kBatch}, values, DType::kF32); }

TEST(Scores, RowsAreExamples) {
  Scores scores;
  scores.add(of_rows({1, 2}), of_rows({4, 2}), of_rows({4, 1}), 2);
  EXPECT_EQ(scores.sequences, 2);
  EXPECT_EQ(scores.sequence_accuracy(), 0.5);
  EXPECT_DOUBLE_EQ(scores.log_perplexity(), 0.5);
}

// Row 0: example 1 right in two tokens, example 2 with one of two wrong, padding. Row 1: example 1 right, 2 and 3 wrong.
TEST(Scores, OfPackedRowsSegmentsAre) {
  Scores scores;
  const Array outcomes({kBatch, kLength}, {3, 3, 5, 4, 0, 0, 3, 3, 3, 4, 4, 6}, DType::kF32);
  scores.add_packed(of_rows({1, 2}), of_rows({4, 6}), of_rows({3, 3}), outcomes);
  EXPECT_EQ(scores.sequences, 5);
  EXPECT_EQ(scores.whole, 2);
  EXPECT_EQ(scores.tokens, 10);
  EXPECT_EQ(scores.correct, 6);
  EXPECT_DOUBLE_EQ(scores.negative_log_likelihood, 3);
}

}  // namespace
}  // namespace weft::evaluate::scores_test
