// Texts that come piece by piece.
#include "train/text_stream.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "small_run.h"
#include "support/expect_error.h"

namespace weft::train::text_stream_test {
namespace {

constexpr int kSize = 288;

bool is_whole_utf8(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    if ((length == 1 && byte >= 0x80) || i + length > text.size()) return false;
    i += length;
  }
  return true;
}

// A vocabulary so small that it says rare characters in bytes.
class PieceVocabulary : public ::testing::Test {
 protected:
  PieceVocabulary() : folder_(::testing::TempDir() + "/weft_text_stream_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream text(folder_ + "/text");
    for (int i = 0; i < 400; ++i) text << "the mesh splits a tensor over axes by name " << i % 10 << "\n";
    text.close();
    data::train_vocabulary({.files = {folder_ + "/text"}, .path_out = folder_ + "/v.model", .size = kSize});
    vocabulary_ = data::Vocabulary::open(folder_ + "/v.model");
  }
  ~PieceVocabulary() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
  data::Vocabulary vocabulary_ = data::Vocabulary::bytes();
};

std::string streamed(TextStream stream, const std::vector<std::int32_t>& ids) {
  std::string all;
  for (const std::int32_t id : ids) {
    const std::string piece = stream.add(id);
    EXPECT_TRUE(is_whole_utf8(piece)) << piece;
    all += piece;
  }
  return all + stream.rest();
}

TEST_F(PieceVocabulary, TextsEndBeforeAStopText) {
  const std::string text = "the mesh splits a tensor over axes";
  const std::vector<std::int32_t> ids = vocabulary_.encode(text);
  // The end of one token and the beginning of the next; two that overlap: the first to begin counts.
  for (const std::string& stop :
       {std::string("s a t"), std::string("splits"), std::string(" tensor"), std::string("es")}) {
    const StopTexts stops(vocabulary_, {stop, "axes"}, 0, "here");
    const std::string want = text.substr(0, text.find(stop));
    TextStream stream(vocabulary_, {}, stops);
    EXPECT_EQ(stream.whole(ids), want);
    EXPECT_EQ(stream.stop_text(), stop);
    EXPECT_EQ(streamed(TextStream(vocabulary_, {}, stops), ids), want);
    // True at the token that completes the stop text, and not before it.
    bool has = false;
    for (std::size_t n = 1; n <= ids.size() && !has; ++n) {
      const std::span<const std::int32_t> some = std::span(ids).first(n);
      has = vocabulary_.decode(some).find(stop) != std::string::npos;
      EXPECT_EQ(stops.are_in(vocabulary_, {}, some), has) << stop << " " << n;
    }
    EXPECT_TRUE(has) << stop;
  }
  const StopTexts other(vocabulary_, {"meshes", "tensors"}, 0, "here");
  EXPECT_EQ(streamed(TextStream(vocabulary_, {}, other), ids), text);
  EXPECT_FALSE(other.are_in(vocabulary_, {}, ids));
}

// Long texts are searched at their end, also where tokens have no text.
TEST_F(PieceVocabulary, StopTextsAreFoundAtTheEndOfLongTexts) {
  std::vector<std::int32_t> ids = vocabulary_.encode("a tensor over axes by name a tensor over axes by name 7");
  for (int i = 0; i < 40; ++i) ids.push_back(data::Vocabulary::kPadding);
  const StopTexts stops(vocabulary_, {"name 7 the"}, 0, "here");
  EXPECT_FALSE(stops.are_in(vocabulary_, {}, ids));
  for (const std::int32_t id : vocabulary_.encode("the")) ids.push_back(id);
  EXPECT_TRUE(stops.are_in(vocabulary_, {}, ids));
}

TEST_F(PieceVocabulary, StopTextsCountFromTheLeastNumberOfTokens) {
  const data::Vocabulary bytes = data::Vocabulary::bytes();
  const std::vector<std::int32_t> ids = bytes.encode("ab ab ab");
  const StopTexts late(bytes, {"ab"}, 4, "here");  // the first three tokens are free
  EXPECT_FALSE(late.are_in(bytes, {}, std::span(ids).first(4)));
  EXPECT_TRUE(late.are_in(bytes, {}, std::span(ids).first(5)));
  EXPECT_EQ(streamed(TextStream(bytes, {}, late), ids), "ab ");
}

TEST_F(PieceVocabulary, RefusesStopTextsThatNothingProduces) {
  EXPECT_USER_ERROR(StopTexts(vocabulary_, {"a", ""}, 0, "decode.stop"), "a stop text is empty", "where: decode.stop",
                    "give a text of at least one character, or leave it out");
  EXPECT_USER_ERROR(  // pieces write this sign for a space
      StopTexts(vocabulary_, {"a", "a\xE2\x96\x81z"}, 0, "decode.stop"),
      "no text can contain the stop text 'a\xE2\x96\x81z': encoded by the vocabulary and decoded, it is 'a z'",
      "give a text as the vocabulary writes it; weft vocab encode shows its tokens");
  EXPECT_NO_THROW(StopTexts(vocabulary_, {" ", "\n", "\xE4\xB8\xAD", " the"}, 0, "decode.stop"));
  EXPECT_NO_THROW(StopTexts(data::Vocabulary::bytes(), {"\xEF\xBC\xA1", "\n\n"}, 0, "decode.stop"));
}

TEST_F(PieceVocabulary, PiecesInARowAreTheText) {
  const std::string text = "the mesh splits\na \xC3\xA4 tensor \xE4\xB8\xAD\xF0\x9F\x98\x80 over axes";
  const std::vector<std::int32_t> ids = vocabulary_.encode(text);
  EXPECT_GT(ids.size(), 12u);  // characters of several tokens among them
  EXPECT_EQ(streamed(TextStream(vocabulary_, {}), ids), text);
  EXPECT_EQ(TextStream(vocabulary_, {}).whole(ids), text);
}

TEST_F(PieceVocabulary, AWordAfterThePromptKeepsItsSpace) {
  const std::vector<std::int32_t> prompt = vocabulary_.encode("the mesh");
  std::vector<std::int32_t> more = vocabulary_.encode("the mesh splits a tensor");
  more.erase(more.begin(), more.begin() + static_cast<std::ptrdiff_t>(prompt.size()));
  EXPECT_EQ(TextStream(vocabulary_, prompt).whole(more), " splits a tensor");
  EXPECT_EQ(streamed(TextStream(vocabulary_, prompt), more), " splits a tensor");
}

TEST_F(PieceVocabulary, AnyTokensDo) {
  std::mt19937 draw(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int32_t> prompt, ids;
    for (std::uint32_t i = draw() % 4; i > 0; --i)
      prompt.push_back(2 + static_cast<std::int32_t>(draw() % (kSize - 2)));
    for (int i = 0; i < 20; ++i) ids.push_back(static_cast<std::int32_t>(draw() % kSize));
    std::erase(ids, data::Vocabulary::kEnd);
    const std::string whole = TextStream(vocabulary_, prompt).whole(ids);
    TextStream stream(vocabulary_, prompt);
    std::string all;
    for (const std::int32_t id : ids) all += stream.add(id);
    EXPECT_EQ(all + stream.rest(), whole) << "round " << round;
  }
}

TEST(GeneratedText, IsToldWhileItIsMade) {
  const SmallRun run("stream");
  train(run.with("run.steps=4"), kQuiet);
  TrainedModel model(run.folder + "/out", {"decode.max_length=16", "decode.temperature=1"});
  std::vector<std::string> pieces, joined(2);
  const auto texts = model.generate({"the", "a"}, [&](std::size_t prompt, const std::string& piece) {
    joined[prompt] += piece;
    pieces.push_back(piece);
  });
  EXPECT_GT(pieces.size(), 10u);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(joined[i], texts[i][0].text);
}

TEST(GeneratedText, OfBeamsIsNotToldBeforeItIsKnown) {
  const SmallRun run("stream_beams");
  train(run.with("run.steps=2"), kQuiet);
  TrainedModel model(run.folder + "/out", {"decode.max_length=12", "decode.beams=2"});
  int calls = 0;
  EXPECT_FALSE(model.generate({"the "}, [&](std::size_t, const std::string&) { ++calls; })[0].empty());
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace weft::train::text_stream_test
