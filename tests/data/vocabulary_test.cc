// Vocabularies: bytes and SentencePiece models; text goes there and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sentencepiece_trainer.h>

#include <filesystem>
#include <unordered_map>

#include "data/files.h"
#include "support/expect_error.h"
#include "weft/data.h"

namespace weft::data::vocabulary_test {
namespace {

using test::file_with;
using test::scratch;
using testing::ElementsAre;
using testing::HasSubstr;

// Sentences of a little language: enough for some hundred pieces.
std::string small_text(int lines = 3000) {
  const char* const who[] = {"the weaver", "a merchant", "my neighbour", "the old sailor", "every child", "nobody"};
  const char* const does[] = {"buys", "carries", "remembers", "unrolls", "mends", "paints over", "looks for"};
  const char* const what[] = {"the blue thread",   "three looms",     "a map of the harbour",
                              "yesterday's bread", "an empty bottle", "the second window",
                              "café crème"};
  std::string out;
  for (int i = 0; i < lines; ++i)
    out += std::string(who[i % 6]) + " " + does[i / 6 % 7] + " " + what[i / 42 % 7] + " number " +
           std::to_string(i * 7919 % 1000) + "\n";
  return out;
}

VocabularyTraining training(const std::string& out, std::int64_t size = 400) {
  return {.files = {file_with("small.txt", small_text())}, .path_out = scratch(out), .size = size};
}

const Vocabulary& trained(const std::string& type) {
  static std::map<std::string, Vocabulary> made;
  if (!made.contains(type)) {
    VocabularyTraining options = training(type + ".model");
    options.type = type;
    train_vocabulary(options);
    made.emplace(type, Vocabulary::open(options.path_out));
  }
  return made.at(type);
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(DataVocabulary, Bytes) {
  const Vocabulary bytes = Vocabulary::of("bytes");
  EXPECT_EQ(bytes.size(), 259);
  EXPECT_EQ(bytes.fingerprint(), "bytes");
  EXPECT_THAT(bytes.encode(std::string("A\0\xff\n", 4)), ElementsAre(68, 3, 258, 13));
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(bytes.decode(bytes.encode(all)), all);
  EXPECT_EQ(bytes.decode(std::vector<std::int32_t>{0, 68, 0, 69, 1, 70}), "AB") << "padding is left out, 1 ends";
  EXPECT_EQ(bytes.decode(std::vector<std::int32_t>{2, 68, 259, -1}),
            "\xef\xbf\xbd"
            "A"
            "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(DataVocabulary, PiecesSayEveryText) {
  for (const std::string type : {"unigram", "bpe"}) {
    SCOPED_TRACE(type);
    const Vocabulary& vocabulary = trained(type);
    EXPECT_EQ(vocabulary.size(), 400);
    const std::string known = "the weaver buys the blue thread";
    EXPECT_LT(vocabulary.encode(known).size(), known.size() * 2 / 3);
    for (const std::string& text :
         {known, std::string(), std::string(" "), std::string("\n"), std::string("a\nb"), std::string("\n\n a  b \n\n"),
          std::string("  two spaces\t tab"), std::string("漢字 and ﬁ … \u00a0"), std::string("<s></s><unk><pad><0x0A>"),
          std::string("trailing \n"), small_text(20)}) {
      const std::vector<std::int32_t> ids = vocabulary.encode(text);
      EXPECT_EQ(vocabulary.decode(ids), text);
      for (const std::int32_t id : ids) EXPECT_TRUE(id > 2 && id < 400) << id;
    }
    std::vector<std::int32_t> ids = vocabulary.encode(known);
    ids.insert(ids.begin(), 0);
    ids.insert(ids.end(), {1, 50, 60});
    EXPECT_EQ(vocabulary.decode(ids), known);
    EXPECT_THAT(vocabulary.decode(std::vector<std::int32_t>{400, -7}), HasSubstr("\xef\xbf\xbd"));
  }
}

TEST(DataVocabulary, IdsOfLinesFollowEachOther) {
  const Vocabulary& vocabulary = trained("unigram");
  std::vector<std::int32_t> parts = vocabulary.encode("the weaver mends\n");
  const std::vector<std::int32_t> second = vocabulary.encode("three looms");
  parts.insert(parts.end(), second.begin(), second.end());
  EXPECT_EQ(vocabulary.encode("the weaver mends\nthree looms"), parts);
}

TEST(DataVocabulary, TrainingIsRepeatable) {
  train_vocabulary(training("first.model"));
  train_vocabulary(training("second.model"));
  EXPECT_EQ(bytes_of(scratch("first.model")), bytes_of(scratch("second.model")));
  EXPECT_EQ(Vocabulary::open(scratch("first.model")).fingerprint(),
            Vocabulary::open(scratch("second.model")).fingerprint());
  VocabularyTraining fewer = training("second.model");
  fewer.max_sentences = 500;
  train_vocabulary(fewer);
  EXPECT_NE(bytes_of(scratch("first.model")), bytes_of(scratch("second.model")));
}

TEST(DataVocabulary, BothSidesOfPairsCount) {
  std::string tsv;
  for (int i = 0; i < 2000; ++i) tsv += "left" + std::to_string(i % 90) + "\tright" + std::to_string(i % 80) + "\n";
  VocabularyTraining pairs = training("pairs.model", 290);
  pairs.type = "bpe";
  pairs.files = {file_with("pairs.tsv", tsv)};
  train_vocabulary(pairs);
  const Vocabulary vocabulary = Vocabulary::open(pairs.path_out);
  EXPECT_LT(vocabulary.encode("left").size(), 3u);
  EXPECT_LT(vocabulary.encode("right").size(), 3u);
}

TEST(DataVocabulary, BatchesOfPieces) {
  trained("unigram");
  const std::string text = small_text();
  SourceOptions options{.files = {file_with("small.txt", text)},
                        .vocabulary = scratch("unigram.model"),
                        .vocab_limit = 400,
                        .batch = 4,
                        .length = 64,
                        .shuffle = false,
                        .repeat = false};
  Batches batches(options);
  std::vector<std::int32_t> ids;
  while (const auto batch = batches.next())
    for (const double id : batch->at("targets").values()) ids.push_back(static_cast<std::int32_t>(id));
  EXPECT_EQ(Vocabulary::open(options.vocabulary).decode(ids), text);
  const std::string position = batches.position();
  options.vocab_limit = 399;
  EXPECT_USER_ERROR(Batches{options}, "unigram.model' has 400 ids, but the model has 399");
  options.vocab_limit = 0;
  options.vocabulary = "bytes";
  EXPECT_USER_ERROR(Batches(options).seek(position), "its vocabulary was \"", "here it is \"bytes\"");
}

TEST(DataVocabulary, RefusesOtherModels) {
  EXPECT_USER_ERROR(Vocabulary::of(scratch("no.model")), "cannot open the file '");
  for (const std::string& bytes : {std::string(), std::string("This is a text, no model.\n"), std::string(500, '\xff')})
    EXPECT_USER_ERROR(Vocabulary::open(file_with("bad.model", bytes)), "the file is no SentencePiece model",
                      "bad.model", "give 'bytes', or a .model as weft vocab train and spm_train write it");
  std::string cut = bytes_of(scratch("unigram.model"));
  if (cut.empty()) cut = (trained("unigram"), bytes_of(scratch("unigram.model")));
  EXPECT_USER_ERROR(Vocabulary::open(file_with("cut.model", cut.substr(0, cut.size() / 2))),
                    "the file is no SentencePiece model");
}

// A model made by others, of the small text.
std::string foreign(const std::string& name, std::unordered_map<std::string, std::string> settings) {
  file_with("small.txt", small_text());
  settings.insert({{"input", scratch("small.txt")}, {"vocab_size", "60"}, {"minloglevel", "3"}});
  std::string model;
  EXPECT_TRUE(sentencepiece::SentencePieceTrainer::Train(settings, nullptr, &model).ok());
  return file_with(name, model);
}

TEST(DataVocabulary, RefusesOtherIds) {
  EXPECT_USER_ERROR(Vocabulary::open(foreign("default.model", {})),
                    "the model's ids of padding, end and unknown are -1, 2, 0; Weft's are 0, 1, 2", "default.model",
                    "train it by weft vocab train, or with --pad_id=0 --eos_id=1 --unk_id=2 --bos_id=-1");
}

TEST(DataVocabulary, TakesModelsWithoutBytes) {
  const Vocabulary vocabulary =
      Vocabulary::open(foreign("t5.model", {{"pad_id", "0"}, {"eos_id", "1"}, {"unk_id", "2"}, {"bos_id", "-1"}}));
  EXPECT_EQ(vocabulary.size(), 60);
  EXPECT_EQ(vocabulary.decode(vocabulary.encode("the blue thread")), "the blue thread");
  EXPECT_THAT(vocabulary.encode("\n"), ElementsAre(Vocabulary::kUnknown));
}

TEST(DataVocabulary, RefusesTrainingThatCannotBe) {
  VocabularyTraining options = training("never.model");
  options.files.clear();
  EXPECT_USER_ERROR(train_vocabulary(options), "a vocabulary needs text to learn from", "name one text file or more");
  options = training("never.model", 259);
  EXPECT_USER_ERROR(train_vocabulary(options), "a vocabulary of 259 ids cannot be made",
                    "give a size from 260 to 1000000");
  options = training("never.model");
  options.max_sentences = 0;
  EXPECT_USER_ERROR(train_vocabulary(options), "a vocabulary cannot be learnt from 0 lines",
                    "let max_sentences be 1 or more");
  options = training("never.model");
  options.type = "unigrm";
  EXPECT_USER_ERROR(train_vocabulary(options), "unknown type of vocabulary 'unigrm'", "did you mean 'unigram'?");
  options.type = "words";
  EXPECT_USER_ERROR(train_vocabulary(options), "unknown type of vocabulary 'words'", "choose unigram or bpe");
  options = training("never.model", 8192);
  EXPECT_USER_ERROR(train_vocabulary(options),
                    "no vocabulary of 8192 ids can be made of 3000 lines: Vocabulary size too high", "small.txt",
                    "give more text, or a smaller size");
  EXPECT_FALSE(std::filesystem::exists(scratch("never.model")));
}

}  // namespace
}  // namespace weft::data::vocabulary_test
