// What is wrong with data is said with the file, the line and the cure; and token files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "data/files.h"
#include "data/text_file.h"
#include "support/expect_error.h"
#include "weft/data.h"
#include "weft/tensor_file.h"

namespace weft::data::data_errors_test {
namespace {

using test::file_with;
using test::little;
using test::npy;
using test::scratch;
using testing::ElementsAre;

SourceOptions of(const std::string& file, const std::string& format = "") {
  return {.files = {file}, .format = format, .batch = 2, .length = 4, .shuffle = false, .repeat = false};
}

std::vector<double> first_of(const SourceOptions& options, const std::string& feature = "targets") {
  return Batches(options).next()->at(feature).values();
}

std::string u16(const std::vector<int>& ids) {
  std::string out;
  for (int id : ids) out += little(static_cast<std::uint64_t>(id), 2);
  return out;
}

TEST(DataErrors, MissingAndEmptyFiles) {
  EXPECT_USER_ERROR(Batches(of(scratch("nowhere.txt"))), "cannot open the file '", "nowhere.txt': No such file",
                    "give the path of a file that you may read");
  EXPECT_USER_ERROR(Batches(of(scratch("nowhere.u16"))), "cannot open the file '");
  EXPECT_USER_ERROR(Batches(of(file_with("empty.txt", ""))), "the file is empty", "empty.txt",
                    "give a file that has text in it");
  EXPECT_USER_ERROR(Batches(of(file_with("empty.u16", ""))),
                    "the file has 0 bytes, which are no tokens of 2 bytes each",
                    "write each token as a little-endian integer, and nothing else");
  EXPECT_USER_ERROR(Batches(of(file_with("odd.u32", "123456"))), "the file has 6 bytes, which are no tokens of 4");
  EXPECT_USER_ERROR(Batches(of(file_with("blank.txt", "\n \n\t\n"), "lines")),
                    "the files have no example: every line is blank, or lacks a side", "blank.txt",
                    "give files with text for the format 'lines'");
  EXPECT_USER_ERROR(Batches(of(file_with("half.tsv", "a\t\n"))), "the files have no example");
  EXPECT_USER_ERROR(Batches(SourceOptions{}), "the data has no files", "name one file or more");
}

TEST(DataErrors, Lines) {
  EXPECT_USER_ERROR(Batches(of(file_with("t.tsv", "a\tb\n\nc d\n"))), "the line has 0 tabs instead of one", "t.tsv:3",
                    "write inputs, a tab and targets on every line");
  EXPECT_USER_ERROR(Batches(of(file_with("t.tsv", "a\tb\tc\n"))), "the line has 2 tabs instead of one", "t.tsv:1");
  EXPECT_USER_ERROR(Batches(of(file_with("latin.txt", "fine\nna\xefve\n"))), "the byte 239 is no UTF-8 here",
                    "latin.txt:2", "convert the file: iconv -f LATIN1 -t UTF-8");
  SourceOptions pairs = of(file_with("e.en", "a\nb\n"));
  pairs.targets_file = file_with("e.fr", "c\n");
  EXPECT_USER_ERROR(Batches{pairs}, "the two files have 2 and 1 lines", "e.en, ", "e.fr",
                    "give as many targets as inputs: line i of the targets translates line i of the inputs");
}

TEST(DataErrors, Utf8) {
  const std::string good = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xed\x9f\xbf\xf4\x8f\xbf\xbf and eight more";
  EXPECT_EQ(first_invalid_utf8(good), std::string::npos);
  for (const char* bad : {"\x80", "\xc3", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                          "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98", "\xff"}) {
    EXPECT_EQ(first_invalid_utf8(good + bad), good.size());
    EXPECT_EQ(first_invalid_utf8(good + bad + " and what follows"), good.size());
  }
}

TEST(DataErrors, Options) {
  const std::string text = file_with("o.txt", "some text\n");
  EXPECT_USER_ERROR(Batches(of(text, "line")), "unknown data format 'line'", "did you mean 'lines'?");
  EXPECT_USER_ERROR(Batches(of(text, "parquet")), "unknown data format 'parquet'",
                    "choose one of text, documents, lines, tsv, pairs, tokens");
  SourceOptions options = of(text);
  options.batch = 0;
  EXPECT_USER_ERROR(Batches{options}, "a batch's batch is 0", "data option batch", "give a number from 1 to 1000000",
                    "code:  data.bad-size");
  options = of(text);
  options.length = 1'000'001;
  EXPECT_USER_ERROR(Batches{options}, "a batch's length is 1000001");
  options = of(text);
  options.inputs_length = -1;
  EXPECT_USER_ERROR(Batches{options}, "a batch's inputs_length is -1");
  EXPECT_USER_ERROR(Batches(of(text, "pairs")), "the format 'pairs' goes with one file and a targets_file",
                    "for two files of lines give format 'pairs', the inputs in files, the targets in targets_file");
  options = of(text, "lines");
  options.targets_file = text;
  EXPECT_USER_ERROR(Batches{options}, "the format 'lines' goes with files alone, not a targets_file");
  options = of(text, "lines");
  options.trim = false;
  EXPECT_USER_ERROR(Batches{options}, "none of the 1 examples fits into a row of 4", "o.txt",
                    "make length and inputs_length larger, or let trim cut the examples");
  options = of(text);
  options.vocab_limit = 258;
  EXPECT_USER_ERROR(Batches{options}, "the vocabulary 'bytes' has 259 ids, but the model has 258",
                    "set the model's vocab to 259 or more");
}

TEST(DataErrors, Positions) {
  const SourceOptions options = of(file_with("seek.txt", "abcdefghijklmnop"));
  Batches batches(options);
  batches.next();
  const std::string position = batches.position();
  SourceOptions other = options;
  other.length = 5;
  EXPECT_USER_ERROR(Batches(other).seek(position), "the position belongs to other data: its length was 4, here it is 5",
                    "go on with the same files and data options, or begin a new run");
  other = options;
  other.shuffle = true;
  EXPECT_USER_ERROR(Batches(other).seek(position), "its shuffle was false, here it is true");
  other = options;
  other.files = {file_with("seek2.txt", "abcdefghijklmnoq")};
  EXPECT_USER_ERROR(Batches(other).seek(position), "its files was \"");
  other = options;
  other.repeat = true;
  other.files = {file_with("moved.txt", "abcdefghijklmnop")};
  Batches(other).seek(position);  // neither the name nor the end matters
  std::string beyond = position;
  beyond.replace(beyond.find("\"example\":2"), 11, "\"example\":9");
  for (const std::string& bad : {std::string("{}"), std::string("12"), std::string("no JSON"), beyond,
                                 std::string(R"({"epoch":-1)") + position.substr(position.find(','))}) {
    EXPECT_USER_ERROR(batches.seek(bad), "' is no position in data",
                      "give the text that position() gave, as it stands in a checkpoint");
    EXPECT_EQ(batches.position(), position);
  }
  Batches ahead(options, 4);
  ahead.next();
  EXPECT_USER_ERROR(ahead.seek("{}"), "'{}' is no position in data");
  EXPECT_EQ(ahead.position(), position);
  EXPECT_EQ(ahead.next()->at("targets").values(), batches.next()->at("targets").values());
}

TEST(DataTokens, RawFilesAreOneStream) {
  SourceOptions options = of(file_with("t.u16", u16({5, 6, 7})));
  options.files.push_back(file_with("t.u32", little(70000, 4) + little(9, 4) + little(10, 4)));
  EXPECT_THAT(first_of(options), ElementsAre(5, 6, 7, 70000, 9, 10, 0, 0));
  EXPECT_EQ(Batches(options).examples(), 2);
}

TEST(DataTokens, ArraysOfEveryKind) {
  const auto dict = [](const std::string& descr, const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  for (const auto& [descr, bytes] : {std::pair("|u1", 1), {"<u2", 2}, {"<u4", 4}, {"<i4", 4}, {"<i8", 8}}) {
    SCOPED_TRACE(descr);
    const std::string data = little(200, bytes) + little(3, bytes) + little(4, bytes);
    EXPECT_THAT(first_of(of(file_with("t.npy", npy(dict(descr, "(3,)"), data, 1)))),
                ElementsAre(200, 3, 4, 0, 0, 0, 0, 0));
  }
  EXPECT_THAT(first_of(of(file_with("rows.npy", npy(dict("<u2", "(2, 3)"), u16({5, 1, 0, 6, 7, 1}), 1)))),
              ElementsAre(5, 1, 0, 0, 6, 7, 1, 0))
      << "the second row has no room beside the first";
  EXPECT_USER_ERROR(TensorFile::open(scratch("rows.npy")).read("rows", {"a", "b"}),
                    "tensor 'rows' is stored as <u2, which Weft does not have");
}

TEST(DataTokens, PairsFromSafetensors) {
  const std::string path = scratch("pairs.safetensors");
  const Array inputs({{"n", 2}, {"i", 3}}, std::vector<std::int32_t>{5, 1, 0, 6, 1, 0});
  const Array targets({{"n", 2}, {"t", 2}}, std::vector<std::int32_t>{7, 1, 8, 1});
  write_safetensors(path, {{"inputs", inputs}, {"targets", targets}});
  EXPECT_THAT(first_of(of(path)), ElementsAre(7, 1, 8, 1, 0, 0, 0, 0));
  EXPECT_THAT(first_of(of(path), "inputs"), ElementsAre(5, 1, 6, 1, 0, 0, 0, 0));
  EXPECT_THAT(first_of(of(path), "inputs_segments"), ElementsAre(1, 1, 2, 2, 0, 0, 0, 0));
  SourceOptions joined = of(path);
  joined.join = true;
  EXPECT_THAT(first_of(joined), ElementsAre(5, 1, 7, 1, 6, 1, 8, 1));

  write_safetensors(path, {{"a", inputs}, {"b", targets}});
  EXPECT_USER_ERROR(Batches(of(path)), "the file has 2 tensors and none is called 'targets'",
                    "call the tokens 'targets' and, of pairs, 'inputs'");
  write_safetensors(path, {{"inputs", Array({{"n", 3}}, DType::kI32)}, {"targets", targets}});
  EXPECT_USER_ERROR(Batches(of(path)),
                    "'inputs' and 'targets' are no rows of pairs: they need two dims and as many rows",
                    "save both as [pairs length], padded with zeros");
  write_safetensors(path, {{"targets", Array({{"n", 3}}, DType::kF32)}});
  EXPECT_USER_ERROR(
      Batches(of(path)), "the tensor, F32 of 1 dims, holds no tokens",
      "save integers (u2, u4, i4, i8) of one dim, a stream, or of two, a row for each example, row-major");
  write_safetensors(path, {{"targets", targets}});
  SourceOptions two = of(path);
  two.files.push_back(path);
  EXPECT_USER_ERROR(Batches{two}, "a token file with a row for each example must be the only file",
                    "put all rows into one file");
}

TEST(DataTokens, RangeIsCheckedWhereIdsAreRead) {
  SourceOptions options = of(file_with("range.u16", u16({1, 2, 3, 4, 5, 6, 7, 8, 9, 300, 11, 12})));
  options.vocab_limit = 300;
  Batches batches(options);
  batches.next();
  const std::string position = batches.position();
  for (int i = 0; i < 2; ++i) {
    EXPECT_USER_ERROR(batches.next(), "token 9 is 300, but ids are 0 to 299", "range.u16",
                      "make the file with the model's vocabulary, or give the model a larger one");
    EXPECT_EQ(batches.position(), position);
  }
  Batches ahead(options, 4);
  ahead.next();
  for (int i = 0; i < 2; ++i) EXPECT_USER_ERROR(ahead.next(), "token 9 is 300, but ids are 0 to 299");
  EXPECT_EQ(ahead.position(), position);
  const std::string negative = scratch("negative.npy");
  write_npy(negative, Array({{"n", 2}}, std::vector<std::int32_t>{4, -3}));
  EXPECT_USER_ERROR(Batches(of(negative)).next(), "token 1 is -3, but ids are 0 to ");
}

// An id that is out of range is found by who reads it: a stream reads its own rows alone, and rows of a file, which say
// by themselves how long they are, once.
TEST(DataTokens, OfOtherRowsNothingIsRead) {
  SourceOptions stream = of(file_with("rows.u16", u16({1, 2, 3, 4, 300, 6, 7, 8})));
  stream.batch = 2;
  stream.length = 4;
  stream.vocab_limit = 300;
  Batches first(stream), second(stream);
  first.only_rows(0, 1);
  second.only_rows(1, 2);
  EXPECT_EQ(first.next()->at("targets").values(), (std::vector<double>{1, 2, 3, 4, 0, 0, 0, 0}));
  EXPECT_USER_ERROR(second.next(), "token 4 is 300, but ids are 0 to 299", "rows.u16");

  const std::string path = scratch("rows.npy");
  write_npy(path, Array({{"rows", 2}, {"n", 4}}, std::vector<std::int32_t>{1, 2, 0, 0, 5, 6, 7, 0}));
  SourceOptions rows = of(path);
  rows.batch = 2;
  rows.length = 4;
  rows.pack = false;
  rows.repeat = true;
  Batches again(rows);
  again.only_rows(1, 2);
  again.next();
  std::ofstream(path, std::ios::binary | std::ios::in).seekp(128).write("\xff\xff\xff\xff", 4);  // of the first row
  EXPECT_EQ(again.next()->at("targets").values(), (std::vector<double>{0, 0, 0, 0, 5, 6, 7, 0}));
  EXPECT_EQ(again.tokens(), 10);
}

TEST(DataTokens, OtherContentsAreOtherData) {
  SourceOptions options = of(file_with("a.u16", u16(std::vector<int>(100'000, 5))));
  const std::string position = Batches(options).position();
  std::vector<int> ids(100'000, 5);
  ids.back() = 6;
  options.files = {file_with("b.u16", u16(ids))};
  EXPECT_USER_ERROR(Batches(options).seek(position), "its files was \"");
}

}  // namespace
}  // namespace weft::data::data_errors_test
