// Batches from text: windows of a stream, packing, pairs, order, positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/files.h"
#include "data/shuffle.h"
#include "support/expect_error.h"
#include "weft/data.h"

namespace weft::data::batches_test {
namespace {

using test::file_with;
using testing::ElementsAre;

using Numbers = std::vector<std::int32_t>;

Numbers row_of(const Batch& batch, const std::string& feature, std::int64_t row = 0) {
  const Array& array = batch.at(feature);
  const std::int64_t length = array.shape()[1].size;
  Numbers out;
  for (std::int64_t i = 0; i < length; ++i) out.push_back(static_cast<std::int32_t>(array.at(row * length + i)));
  return out;
}

std::string text_of(const Batch& batch, std::int64_t row = 0, const std::string& feature = "targets") {
  return Vocabulary::bytes().decode(row_of(batch, feature, row));
}

// In order and once.
SourceOptions plain(std::vector<std::string> files, std::int64_t batch, std::int64_t length) {
  return {.files = std::move(files), .batch = batch, .length = length, .shuffle = false, .repeat = false};
}

template <class Stream>
std::vector<std::string> all_rows(Stream&& batches) {
  std::vector<std::string> rows;
  while (const auto batch = batches.next())
    for (std::int64_t row = 0; row < batch->at("targets").shape()[0].size; ++row) rows.push_back(text_of(*batch, row));
  return rows;
}

// --- Masked tokens ---

SourceOptions masked(std::vector<std::string> files, std::int64_t batch, std::int64_t length, double share) {
  SourceOptions options = plain(std::move(files), batch, length);
  options.format = "lines";
  options.mask = share;
  return options;
}

TEST(DataMask, HidesTokensAndAsksForThem) {
  std::string text;
  for (int i = 0; i < 400 * 21; ++i) text += i % 21 == 20 ? '\n' : static_cast<char>('a' + i / 21 % 26);
  const std::string file = file_with("mask.txt", text);
  Batches batches(masked({file}, 8, 50, 0.15));
  EXPECT_FALSE(batches.has_inputs());
  EXPECT_TRUE(batches.packed());
  SourceOptions as_lines = plain({file}, 8, 50);
  as_lines.format = "lines";
  Batches original(as_lines);
  double tokens = 0, masked_ones = 0, hidden = 0, stays = 0, replaced = 0;
  while (const auto batch = batches.next()) {
    const Batch before = *original.next();
    EXPECT_EQ(batch->at("inputs").shape(), (Shape{{"batch", 8}, {"length", 50}}));
    EXPECT_EQ(batch->at("inputs_segments").values(), before.at("targets_segments").values());
    EXPECT_EQ(batch->at("inputs_positions").values(), before.at("targets_positions").values());
    for (std::int64_t i = 0; i < batch->at("inputs").elements(); ++i) {
      const double in = batch->at("inputs").at(i), out = batch->at("targets").at(i), was = before.at("targets").at(i);
      tokens += was > 1;
      if (out == 0) {
        EXPECT_EQ(in, was) << "what is not asked for can be read";
        continue;
      }
      ASSERT_EQ(out, was);
      ASSERT_GT(was, 1) << "ends and padding are not masked";
      ++masked_ones;
      ++(in == 2 ? hidden : in == was ? stays : replaced);
    }
  }
  EXPECT_NEAR(masked_ones / tokens, 0.15, 0.02);
  EXPECT_NEAR(hidden / masked_ones, 0.8, 0.05);
  EXPECT_NEAR(replaced / masked_ones, 0.1, 0.04);
  EXPECT_NEAR(stays / masked_ones, 0.1, 0.04);
}

// The draw is of the example: rows, batches and where a process begins do not matter; another epoch is another draw.
TEST(DataMask, DependsOnSeedEpochExampleAndPlaceAlone) {
  const std::string file = file_with("mask2.txt", "abcdefghij\nklmnopqrst\nuvwxyzabcd\nefghijklmn\n");
  const auto rows = [&](SourceOptions options) {
    options.pack = false;
    Batches batches(options);
    std::vector<Numbers> all;
    while (all.size() < 8) {
      const Batch batch = *batches.next();
      for (std::int64_t row = 0; row < options.batch; ++row) all.push_back(row_of(batch, "inputs", row));
    }
    return all;
  };
  SourceOptions options = masked({file}, 4, 16, 0.5);
  options.repeat = true;
  const auto four = rows(options);
  options.batch = 1;
  EXPECT_EQ(rows(options), four);
  EXPECT_NE(four[0], four[4]) << "the same example in the next epoch";
  options.seed = 1;
  EXPECT_NE(rows(options), four);

  options.batch = 2;
  options.pack = false;
  Batches from_start(options);
  from_start.next();
  Batches resumed(options);
  resumed.seek(from_start.position());
  EXPECT_EQ(row_of(*resumed.next(), "inputs"), row_of(*from_start.next(), "inputs"));
  SourceOptions other = options;
  other.mask = 0.25;
  EXPECT_USER_ERROR(Batches(other).seek(from_start.position()), "its mask was 0.5, here it is 0.25");
}

TEST(DataMask, RefusesWhatMakesNoSense) {
  const std::string file = file_with("mask3.txt", "abc\n"), pairs = file_with("mask3.tsv", "abc\tdef\n");
  EXPECT_USER_ERROR(Batches(masked({file}, 1, 8, 1.5)), "the share of masked tokens is 1.5", "data option mask",
                    "give a number above 0 and below 1, such as 0.15; 0 to mask none");
  SourceOptions options = masked({file}, 1, 8, 0.5);
  options.mask_id = 259;
  EXPECT_USER_ERROR(Batches{options}, "masked tokens are to be read as 259, and ids are 2 to 258",
                    "data option mask_id", "give the vocabulary's id for masked tokens, or 2, unknown");
  options = masked({pairs}, 1, 8, 0.5);
  options.format = "tsv";
  EXPECT_USER_ERROR(Batches{options}, "tokens are to be masked in pairs, which have inputs already",
                    "data options mask, join", "set join, which makes a pair one sequence");
  options.join = true;
  EXPECT_EQ(Batches(options).next()->at("targets").shape().size_of("length"), 8);
}

TEST(DataText, IsOneStreamCutIntoRows) {
  Batches batches(plain({file_with("a.txt", "abcdefgh"), file_with("b.txt", "ij")}, 2, 4));
  EXPECT_FALSE(batches.packed());
  EXPECT_FALSE(batches.has_inputs());
  EXPECT_EQ(batches.examples(), 3);
  const Batch first = *batches.next();
  EXPECT_EQ(first.size(), 1u);
  EXPECT_EQ(first.at("targets").dtype(), DType::kI32);
  EXPECT_EQ(first.at("targets").shape(), (Shape{{"batch", 2}, {"length", 4}}));
  EXPECT_THAT(row_of(first, "targets", 0), ElementsAre(100, 101, 102, 103));
  EXPECT_EQ(text_of(first, 1), "efgh");
  EXPECT_EQ(batches.tokens(), 8);
  const Batch last = *batches.next();
  EXPECT_THAT(row_of(last, "targets", 0), ElementsAre(1, 'i' + 3, 'j' + 3, 1)) << "each file ends";
  EXPECT_THAT(row_of(last, "targets", 1), ElementsAre(0, 0, 0, 0)) << "filled up";
  EXPECT_EQ(batches.tokens(), 12);
  EXPECT_FALSE(batches.next());
  EXPECT_FALSE(batches.next());
}

TEST(DataText, LineEndsAndMarks) {
  Batches batches(plain({file_with("crlf.txt",
                                   "\xef\xbb\xbf"
                                   "a\r\nb\rc\r\n")},
                        1, 16));
  EXPECT_EQ(text_of(*batches.next()), "a\nb\rc\n");
}

TEST(DataText, EveryRowOnceInEveryEpoch) {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += std::string(1, static_cast<char>('0' + i / 10)) + static_cast<char>('0' + i % 10);
  text.pop_back();  // room for the end
  SourceOptions options{.files = {file_with("rows.txt", text)}, .batch = 10, .length = 2, .seed = 3};
  std::vector<std::vector<std::string>> epochs(3);
  Batches batches(options);
  for (std::vector<std::string>& epoch : epochs)
    for (int i = 0; i < 10; ++i) {
      const Batch batch = *batches.next();
      for (int row = 0; row < 10; ++row) epoch.push_back(text_of(batch, row));
    }
  EXPECT_EQ(batches.tokens(), 600);
  for (const auto& epoch : epochs) EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 100u);
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  EXPECT_FALSE(std::is_sorted(epochs[0].begin(), epochs[0].end()));
  options.seed = 4;
  EXPECT_NE(text_of(*Batches(options).next()), epochs[0][0] + epochs[0][1]);
}

TEST(DataText, ABatchMaySpanEpochs) {
  SourceOptions options = plain({file_with("span.txt", "abcde")}, 2, 2);  // ab cd e1
  options.repeat = true;
  Batches batches(options);
  std::vector<std::string> rows;
  for (int i = 0; i < 3; ++i) {
    const Batch batch = *batches.next();
    rows.insert(rows.end(), {text_of(batch, 0), text_of(batch, 1)});
  }
  EXPECT_THAT(rows, ElementsAre("ab", "cd", "e", "ab", "cd", "e"));
  EXPECT_EQ(batches.epoch(), 1);
}

TEST(DataText, ManyLinesOnAllCoresKeepTheirOrder) {
  std::string text;
  while (text.size() < 3'000'000) text += "line " + std::to_string(text.size()) + "\n";
  Batches batches(plain({file_with("big.txt", text)}, 4, 4096));
  std::string back;
  for (const std::string& row : all_rows(batches)) back += row;
  EXPECT_EQ(back, text);
}

TEST(DataShuffle, IsAPermutationOfAnyCount) {
  for (std::int64_t count : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
    const Permutation order(count, 7, 1);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < count; ++i) seen.insert(order(i));
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), count);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), count - 1);
  }
}

TEST(DataShuffle, IsTheSameOnEveryMachine) {
  const Permutation order(10, 42, 0);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 10; ++i) numbers.push_back(order(i));
  EXPECT_THAT(numbers, ElementsAre(3, 9, 0, 5, 4, 2, 8, 7, 6, 1));
}

TEST(DataShuffle, MovesThingsEverywhere) {
  // Where the first of 100 comes to lie under 10,000 seeds: each place about 100 times.
  std::vector<int> hits(100);
  for (std::uint64_t seed = 0; seed < 10000; ++seed) ++hits[static_cast<std::size_t>(Permutation(100, seed, 0)(0))];
  EXPECT_GT(*std::min_element(hits.begin(), hits.end()), 60);
  EXPECT_LT(*std::max_element(hits.begin(), hits.end()), 145);
}

TEST(DataLines, ArePackedInOrder) {
  SourceOptions options = plain({file_with("lines.txt", "ab\n\ncd\n \nefg\nhijklmnop\nq")}, 4, 7);
  options.format = "lines";
  Batches batches(options);
  EXPECT_TRUE(batches.packed());
  EXPECT_EQ(batches.examples(), 5);
  const Batch batch = *batches.next();
  EXPECT_EQ(batch.size(), 3u);
  const auto id = [](char c) { return 3 + c; };
  EXPECT_THAT(row_of(batch, "targets", 0), ElementsAre(id('a'), id('b'), 1, id('c'), id('d'), 1, 0));
  EXPECT_THAT(row_of(batch, "targets_segments", 0), ElementsAre(1, 1, 1, 2, 2, 2, 0));
  EXPECT_THAT(row_of(batch, "targets_positions", 0), ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(row_of(batch, "targets", 1), ElementsAre(id('e'), id('f'), id('g'), 1, 0, 0, 0));
  EXPECT_EQ(text_of(batch, 2), "hijklmn") << "too long: cut, and its end with it";
  EXPECT_THAT(row_of(batch, "targets_positions", 2), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(row_of(batch, "targets_segments", 3), ElementsAre(1, 1, 0, 0, 0, 0, 0));
  EXPECT_EQ(batches.tokens(), 6 + 4 + 7 + 2);
  EXPECT_FALSE(batches.next());
}

TEST(DataLines, ACutExampleCanKeepAnEnd) {
  SourceOptions options = plain({file_with("ends.txt", "ab\ncdefgh\nijk\n")}, 3, 4);
  options.format = "lines";
  const std::string without = Batches(options).position();
  options.ensure_end = true;
  Batches batches(options);
  const Batch batch = *batches.next();
  const auto id = [](char c) { return 3 + c; };
  EXPECT_THAT(row_of(batch, "targets", 0), ElementsAre(id('a'), id('b'), 1, 0));
  EXPECT_THAT(row_of(batch, "targets", 1), ElementsAre(id('c'), id('d'), id('e'), 1));
  EXPECT_THAT(row_of(batch, "targets", 2), ElementsAre(id('i'), id('j'), id('k'), 1));
  EXPECT_USER_ERROR(batches.seek(without), "its ensure_end was not set, here it is true");
  const std::string with = batches.position();
  options.mask = 0.9;
  Batches masks(options);
  const Batch masked = *masks.next();
  EXPECT_EQ(row_of(masked, "inputs", 1)[3], 1) << "the new end is not masked";
  EXPECT_EQ(row_of(masked, "targets", 1)[3], 0);
  options.mask = 0;
  options.trim = false;
  EXPECT_THAT(all_rows(Batches(options)), ElementsAre("ab", "ijk", "")) << "left out, not cut";
  options.ensure_end = false;
  options.trim = true;
  EXPECT_USER_ERROR(Batches(options).seek(with), "its ensure_end was true, here it is not set");
}

TEST(DataLines, OneInARow) {
  SourceOptions options = plain({file_with("lines.txt", "ab\ncd\nefghijk\nl")}, 2, 3);
  options.format = "lines";
  options.pack = false;
  options.trim = false;
  Batches batches(options);
  EXPECT_FALSE(batches.packed());
  EXPECT_THAT(all_rows(batches), ElementsAre("ab", "cd", "l", "")) << "the long one is left out";
}

TEST(DataLines, DocumentsEndAtBlankLines) {
  SourceOptions options = plain({file_with("documents.txt", "\n\na\nb\n  \nc\n\n\n")}, 1, 8);
  options.format = "documents";
  options.pack = false;
  EXPECT_THAT(all_rows(Batches(options)), ElementsAre("a\nb", "c"));
}

TEST(DataPairs, InputsAndTargetsShareSegments) {
  SourceOptions options = plain({file_with("pairs.tsv", "a\tbcd\nef\tg\n\n\tx\nhijk\tlm\n")}, 2, 6);
  options.inputs_length = 5;
  Batches batches(options);
  EXPECT_TRUE(batches.packed());
  EXPECT_TRUE(batches.has_inputs());
  EXPECT_EQ(batches.examples(), 3);
  const Batch batch = *batches.next();
  EXPECT_EQ(batch.size(), 6u);
  EXPECT_EQ(batch.at("inputs").shape(), (Shape{{"batch", 2}, {"inputs_length", 5}}));
  const auto id = [](char c) { return 3 + c; };
  EXPECT_THAT(row_of(batch, "inputs", 0), ElementsAre(id('a'), 1, id('e'), id('f'), 1));
  EXPECT_THAT(row_of(batch, "inputs_segments", 0), ElementsAre(1, 1, 2, 2, 2));
  EXPECT_THAT(row_of(batch, "inputs_positions", 0), ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THAT(row_of(batch, "targets", 0), ElementsAre(id('b'), id('c'), id('d'), 1, id('g'), 1));
  EXPECT_THAT(row_of(batch, "targets_segments", 0), ElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(row_of(batch, "inputs", 1), ElementsAre(id('h'), id('i'), id('j'), id('k'), 1));
  EXPECT_THAT(row_of(batch, "targets_segments", 1), ElementsAre(1, 1, 1, 0, 0, 0)) << "the inputs had no room";
}

TEST(DataPairs, TwoFilesOneInARow) {
  SourceOptions options = plain({file_with("p.en", "one\ntwo")}, 2, 8);
  options.targets_file = file_with("p.fr", "un\ndeux\n");
  options.pack = false;
  Batches batches(options);
  const Batch batch = *batches.next();
  EXPECT_EQ(batch.size(), 2u);
  EXPECT_EQ(text_of(batch, 1, "inputs"), "two");
  EXPECT_EQ(text_of(batch, 1), "deux");
  EXPECT_EQ(batch.at("inputs").shape().size_of("inputs_length"), 8) << "as length";
}

TEST(DataPairs, JoinedIntoOneSequence) {
  SourceOptions options = plain({file_with("j.tsv", "a\tb\n")}, 1, 6);
  options.join = true;
  Batches batches(options);
  EXPECT_FALSE(batches.has_inputs());
  EXPECT_THAT(row_of(*batches.next(), "targets"), ElementsAre('a' + 3, 1, 'b' + 3, 1, 0, 0));
}

TEST(DataPairs, PackingLosesNothing) {
  std::string tsv;
  std::set<std::string> wanted;
  for (int i = 0; i < 500; ++i) {
    const std::string target = std::string(static_cast<std::size_t>(i % 13), 'x') + std::to_string(i);
    wanted.insert(target);
    tsv += std::string(static_cast<std::size_t>(1 + i % 7), 'y') + "\t" + target + "\n";
  }
  SourceOptions options = plain({file_with("many.tsv", tsv)}, 4, 40);
  options.shuffle = true;
  Batches batches(options);
  std::set<std::string> found;
  while (const auto batch = batches.next())
    for (int row = 0; row < 4; ++row) {
      const Numbers targets = row_of(*batch, "targets", row), segments = row_of(*batch, "targets_segments", row);
      const Numbers inputs = row_of(*batch, "inputs_segments", row);
      EXPECT_EQ(*std::max_element(inputs.begin(), inputs.end()), *std::max_element(segments.begin(), segments.end()));
      std::map<int, Numbers> parts;
      for (std::size_t i = 0; i < targets.size(); ++i)
        if (segments[i] > 0) parts[segments[i]].push_back(targets[i]);
      for (const auto& [segment, ids] : parts) EXPECT_TRUE(found.insert(Vocabulary::bytes().decode(ids)).second);
    }
  EXPECT_EQ(found, wanted);
}

// Every kind of source, for tests that hold for all.
std::vector<SourceOptions> every_kind() {
  std::string text, tsv;
  for (int i = 0; i < 300; ++i) {
    text += "number " + std::to_string(i * i) + (i % 5 ? "\n" : "\n\n");
    tsv += "number " + std::to_string(i) + "\tnombre " + std::to_string(i) + "\n";
  }
  SourceOptions stream{.files = {file_with("kinds.txt", text)}, .batch = 3, .length = 37, .seed = 5};
  SourceOptions lines = stream, documents = stream, padded = stream, pairs = stream, ordered = stream;
  lines.format = "lines";
  documents.format = "documents";
  padded.format = "lines";
  padded.pack = false;
  pairs.files = {file_with("kinds.tsv", tsv)};
  ordered.shuffle = false;
  return {stream, lines, documents, padded, pairs, ordered};
}

bool equal(const Batch& a, const Batch& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.shape() == y.second.shape() && x.second.values() == y.second.values();
  });
}

TEST(DataPosition, GoesOnWhereItWas) {
  for (const SourceOptions& options : every_kind()) {
    Batches whole(options);
    std::vector<std::string> positions;
    std::vector<Batch> batches;
    std::vector<std::int64_t> tokens;
    for (int i = 0; i < 120; ++i) {  // several epochs
      positions.push_back(whole.position());
      tokens.push_back(whole.tokens());
      batches.push_back(*whole.next());
    }
    EXPECT_GE(whole.epoch(), 1);
    for (int begin : {0, 1, 17, 63, 118}) {
      Batches resumed(options);
      resumed.seek(positions[static_cast<std::size_t>(begin)]);
      for (std::size_t i = static_cast<std::size_t>(begin); i < 120; ++i) {
        ASSERT_EQ(resumed.position(), positions[i]);
        ASSERT_EQ(resumed.tokens(), tokens[i]);
        ASSERT_TRUE(equal(*resumed.next(), batches[i])) << options.format << " batch " << i;
      }
    }
  }
}

TEST(DataPosition, IsThatOfTheNextBatchHandedOut) {
  for (const SourceOptions& options : every_kind()) {
    Batches plain(options);
    Batches ahead(options, 3);
    EXPECT_EQ(ahead.packed(), plain.packed());
    EXPECT_EQ(ahead.has_inputs(), plain.has_inputs());
    EXPECT_EQ(ahead.examples(), plain.examples());
    std::string middle;
    std::vector<Batch> after;
    for (int i = 0; i < 40; ++i) {
      ASSERT_EQ(ahead.position(), plain.position());
      ASSERT_EQ(ahead.tokens(), plain.tokens());
      ASSERT_EQ(ahead.epoch(), plain.epoch());
      if (i == 20) middle = ahead.position();
      const Batch batch = *ahead.next();
      ASSERT_TRUE(equal(batch, *plain.next()));
      if (i >= 20) after.push_back(batch);
    }
    ahead.seek(middle);
    EXPECT_EQ(ahead.position(), middle);
    for (const Batch& batch : after) ASSERT_TRUE(equal(*ahead.next(), batch));
  }
}

TEST(DataRows, AreThoseOfTheWholeBatches) {
  for (const SourceOptions& options : every_kind())
    for (int ahead : {0, 2}) {
      Batches whole(options), some(options, ahead);
      some.next();
      whole.next();
      some.only_rows(1, 2);
      for (int i = 0; i < 120; ++i) {  // several epochs
        ASSERT_EQ(some.position(), whole.position());
        ASSERT_EQ(some.tokens(), whole.tokens());
        const Batch all = *whole.next(), one = *some.next();
        ASSERT_EQ(one.size(), all.size());
        for (const auto& [name, array] : all) {
          ASSERT_EQ(one.at(name).shape(), array.shape());
          ASSERT_EQ(row_of(one, name, 1), row_of(all, name, 1)) << options.format << " batch " << i;
          for (int row : {0, 2}) ASSERT_THAT(row_of(one, name, row), testing::Each(0));
        }
      }
    }
}

TEST(DataRows, AreThoseOfABatch) {
  Batches batches(every_kind()[0], 2);
  const std::string position = batches.position();
  for (const auto& [begin, end] : {std::pair(-1, 2), std::pair(2, 1), std::pair(0, 4)})
    EXPECT_USER_ERROR(batches.only_rows(begin, end), "a batch of 3 has no rows " + std::to_string(begin) + " to ",
                      "give a begin and an end from 0 to 3", "code:  data.bad-rows");
  EXPECT_EQ(batches.position(), position);
  EXPECT_TRUE(equal(*batches.next(), *Batches(every_kind()[0]).next()));
}

TEST(DataAhead, EndsAsTheBatchesDo) {
  SourceOptions options = plain({file_with("end.txt", "abcdefg")}, 1, 2);
  Batches batches(options, 100);
  const std::string begin = batches.position();
  EXPECT_THAT(all_rows(batches), ElementsAre("ab", "cd", "ef", "g"));
  EXPECT_FALSE(batches.next());
  batches.seek(begin);
  EXPECT_THAT(all_rows(batches), ElementsAre("ab", "cd", "ef", "g"));
}

TEST(DataAhead, LeavesWhileBatchesAreMade) {
  for (int i = 0; i < 20; ++i) Batches(every_kind()[1], 1 + i % 3);
}

}  // namespace
}  // namespace weft::data::batches_test
