#include "base/str.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::str_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Str, JoinsPartsOfAnyKind) {
  EXPECT_EQ(str("a ", 1, ' ', 2.5, " ", std::string("b"), std::string_view("c")), "a 1 2.5 bc");
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join(std::vector<int>{}, ", "), "");
  EXPECT_EQ(join(std::vector<int>{1}, ", "), "1");
  EXPECT_EQ(join(std::set<std::string>{"a", "b", "c"}, " and "), "a and b and c");
}

const std::vector<std::string> kDims = {"batch", "length", "heads", "d_model", "d_ff", "vocab"};

TEST(NearestWord, FindsTypingErrors) {
  EXPECT_EQ(nearest_word("bacth", kDims), "batch");  // two letters swapped
  EXPECT_EQ(nearest_word("lenght", kDims), "length");
  EXPECT_EQ(nearest_word("head", kDims), "heads");    // one left out
  EXPECT_EQ(nearest_word("vocabs", kDims), "vocab");  // one too many
  EXPECT_EQ(nearest_word("dmodel", kDims), "d_model");
  EXPECT_EQ(nearest_word("Batch", kDims), "batch");
  EXPECT_EQ(nearest_word("heads", kDims), "heads");
}

TEST(NearestWord, IsSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_word("temperature", kDims), "");
  EXPECT_EQ(nearest_word("xyz", kDims), "");
  EXPECT_EQ(nearest_word("batch", {}), "");
}

TEST(NearestWord, TakesTheNearestAndOfEqualsTheFirst) {
  EXPECT_EQ(nearest_word("model", {"mode", "models_", "model"}), "model");
  EXPECT_EQ(nearest_word("dat", {"data", "date"}), "data");
}

TEST(NearestWord, AllowsMoreInLongWords) {
  EXPECT_EQ(nearest_word("ab", {"ax"}), "ax");  // one of two letters
  EXPECT_EQ(nearest_word("ab", {"xy"}), "");
  EXPECT_EQ(nearest_word("memory_lenhgt", {"memory_length"}), "memory_length");
}

TEST(SplitWords, DropsEmptyOnes) {
  EXPECT_THAT(split_words("a b;c", " ;"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split_words("  a  ;; b ", " ;"), ElementsAre("a", "b"));
  EXPECT_THAT(split_words("", " "), IsEmpty());
  EXPECT_THAT(split_words("   ", " "), IsEmpty());
  EXPECT_THAT(split_words("one", " "), ElementsAre("one"));
}

TEST(Words, BytesHaveUnits) {
  EXPECT_EQ(bytes_of("4096"), 4096);
  EXPECT_EQ(bytes_of("64KiB"), 65536);
  EXPECT_EQ(bytes_of("5GB"), 5000000000);
  EXPECT_EQ(bytes_of("2GiB"), std::int64_t{2} << 30);
  for (const char* wrong : {"", "GiB", "-1", "2 GiB", "2TB", "99999999999999999999", "1e3"})
    EXPECT_EQ(bytes_of(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace weft::str_test
