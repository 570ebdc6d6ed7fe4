// How rows are put together in passes over their prompts.
#include "train/prompt_reader.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft::test::prompt_reader_test {
namespace {

using decode::padded_sizes;
using decode::PassLimits;
using decode::PassSizes;
using decode::rows_of_passes;

using Lengths = std::vector<std::array<std::int64_t, 2>>;
using Counts = std::vector<std::size_t>;

TEST(Passes, AreReadInFewSizes) {
  const PassLimits limits{.rows = 40, .prompt = 100, .inputs = 64};
  EXPECT_EQ(padded_sizes({1, 0, 1}, limits), (PassSizes{1, 0, 8}));
  EXPECT_EQ(padded_sizes({5, 9, 0}, limits), (PassSizes{6, 16, 0}));
  EXPECT_EQ(padded_sizes({17, 70, 33}, limits), (PassSizes{24, 96, 48}));
  EXPECT_EQ(padded_sizes({33, 97, 64}, limits), (PassSizes{40, 100, 64}));  // no more than there can be
  const PassLimits split{.rows = 40, .prompt = 100, .inputs = 60, .rows_unit = 4, .prompt_unit = 10, .inputs_unit = 3};
  EXPECT_EQ(padded_sizes({5, 9, 9}, split), (PassSizes{8, 20, 18}));
}

TEST(Passes, KeepRowsOfLikeLengthsTogether) {
  const PassLimits limits{.rows = 64, .prompt = 1000, .inputs = 1000, .tokens = 1024};
  EXPECT_EQ(rows_of_passes(Lengths{}, limits), Counts{});
  EXPECT_EQ(rows_of_passes(Lengths(8, {0, 10}), limits), Counts{8});
  EXPECT_EQ(rows_of_passes(Lengths{{0, 5}, {0, 8}, {0, 600}}, limits), (Counts{2, 1}));
  EXPECT_EQ(rows_of_passes(Lengths{{1000, 0}, {1000, 0}}, limits), (Counts{1, 1}));  // a row may be longer
  Lengths many;
  for (std::int64_t i = 0; i < 64; ++i) many.push_back({i, 3 * i});
  const Counts passes = rows_of_passes(many, limits);
  EXPECT_EQ(std::accumulate(passes.begin(), passes.end(), std::size_t{0}), many.size());
  std::size_t first = 0;
  for (const std::size_t count : passes) {
    const auto& longest = many[first + count - 1];
    const PassSizes sizes = padded_sizes({static_cast<std::int64_t>(count), longest[0], longest[1]}, limits);
    EXPECT_LE(sizes.tokens(), limits.tokens);
    first += count;
  }
}

// A layout that splits the batch gives every processor rows of each pass.
TEST(Passes, AreWholePartsOfASplitBatch) {
  const PassLimits limits{.rows = 64, .inputs = 1000, .rows_unit = 4, .tokens = 1024};
  EXPECT_EQ(rows_of_passes(Lengths(4, {0, 1000}), limits), Counts{4});
  EXPECT_EQ(rows_of_passes(Lengths(6, {0, 1000}), limits), (Counts{4, 2}));
}

}  // namespace
}  // namespace weft::test::prompt_reader_test
