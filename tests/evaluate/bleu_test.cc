// BLEU against sacreBLEU's own numbers (data/README.md), and its tokenizers case by case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "errors/lines.h"
#include "weft/evaluate.h"

namespace weft::test::bleu_test {
namespace {

using evaluate::bleu;
using evaluate::tokens;
using ::testing::ElementsAre;

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(std::string(WEFT_TEST_DATA) + "/evaluate/data/" + file);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) result.push_back(line);
  return result;
}

TEST(Bleu, EqualsSacreBleu) {
  const std::vector<std::string> cases = lines_of("expected.txt");
  ASSERT_EQ(cases.size(), 11u);
  for (const std::string& expected : cases) {
    std::istringstream in(expected);
    std::string text, tokenizer, line;
    int references = 0;
    double score = 0;
    in >> text >> tokenizer >> references >> score >> std::ws;
    std::getline(in, line);
    std::vector<std::vector<std::string>> all = {lines_of(text + ".ref")};
    if (references == 2) all.push_back(lines_of(text + ".ref2"));
    const evaluate::Bleu got = bleu(lines_of(text + ".hyp"), all, tokenizer);
    EXPECT_NEAR(got.score, score, 1e-6) << text;
    EXPECT_EQ(got.text(), line);
  }
}

TEST(Bleu, ExtremesAreNoughtAndAHundred) {
  const std::vector<std::string> text = lines_of("german.ref");
  EXPECT_NEAR(bleu(text, {text}).score, 100, 1e-9);
  EXPECT_EQ(bleu({"a b c d e"}, {{"f g h i j"}}).score, 0);
  EXPECT_EQ(bleu({""}, {{"f g h i j"}}).score, 0);
  EXPECT_EQ(bleu({"a b c"}, {{"a b c"}}).score, 0);  // no run of four tokens
  EXPECT_EQ(
      bleu({""}, {{""}}).text(),
      "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 = 0.00 0.0/0.0/0.0/0.0 (BP = 1.000 ratio = "
      "0.000 hyp_len = 0 ref_len = 0)");
}

TEST(Bleu, TheNearestLengthCountsAndOfTwoTheShorter) {
  EXPECT_EQ(bleu({"a b c d"}, {{"a b c d e f"}, {"a b c"}}).reference_length, 3);
  EXPECT_EQ(bleu({"a b c d"}, {{"a b"}, {"a b c d e f"}}).reference_length, 2);
}

TEST(BleuTokens, OfWmt) {
  EXPECT_THAT(tokens("1,000.5 or 2-3."), ElementsAre("1,000.5", "or", "2", "-", "3", "."));
  EXPECT_THAT(tokens("well-known, e.g. it's"), ElementsAre("well-known", ",", "e", ".", "g", ".", "it's"));
  EXPECT_THAT(tokens("&lt;a&gt; &amp; &quot;b&quot;"), ElementsAre("<", "a", ">", "&", "\"", "b", "\""));
  EXPECT_THAT(tokens("a<skipped>b\u00A0c\u3000d "), ElementsAre("ab", "c", "d"));
  EXPECT_THAT(tokens("élan...été"), ElementsAre("élan", ".", ".", ".", "été"));
}

TEST(BleuTokens, OfOtherKinds) {
  EXPECT_THAT(tokens("né à 2", "char"), ElementsAre("n", "é", "à", "2"));
  EXPECT_THAT(tokens("l'eau,  froide. ", "none"), ElementsAre("l'eau,", "froide."));
  EXPECT_EQ(evaluate::words(" one\ttwo\u202Fthree \n four "), 4);
  EXPECT_EQ(evaluate::words(""), 0);
}

TEST(BleuErrors, LinesThatDoNotMatch) {
  EXPECT_USER_ERROR(bleu({"a", "b"}, {{"a"}}),
                    lines("BLEU of 2 lines against a reference of 1", here(),
                          "give as many lines of each reference as of the translation, in the same order"));
  EXPECT_USER_ERROR(bleu({}, {{}}),
                    lines("BLEU of 0 lines against 1 references", here(), "give at least one line and one reference"));
  EXPECT_USER_ERROR(bleu({"a"}, {}), "BLEU of 1 lines against 0 references");
}

TEST(BleuErrors, NoSuchTokenizer) {
  EXPECT_USER_ERROR(bleu({"a"}, {{"a"}}, "13b"), lines("BLEU has no tokenizer '13b'", here(),
                                                       "did you mean '13a'? The tokenizers are 13a, char and none"));
}

TEST(Scores, AddUpOverBatches) {
  const Dim batch{"batch", 3};
  evaluate::Scores scores;
  EXPECT_EQ(scores.log_perplexity(), 0);
  EXPECT_EQ(scores.sequence_accuracy(), 0);
  const auto row = [&](std::vector<float> values) { return Array({batch}, values); };
  scores.add(row({2, 3, 0}), row({4, 2, 0}), row({4, 1, 0}), 3);    // the last one is empty
  scores.add(row({5, 77, 77}), row({4, 9, 9}), row({2, 9, 9}), 1);  // and these are no rows at all
  EXPECT_DOUBLE_EQ(scores.log_perplexity(), 1.0);
  EXPECT_DOUBLE_EQ(scores.log_perplexity_per_word(4), 2.5);
  EXPECT_DOUBLE_EQ(scores.token_accuracy(), 0.7);
  EXPECT_DOUBLE_EQ(scores.sequence_accuracy(), 1.0 / 3);
  EXPECT_EQ(scores.sequences, 3);
}

}  // namespace
}  // namespace weft::test::bleu_test
