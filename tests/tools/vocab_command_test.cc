// weft vocab as a user meets it: train, encode, decode, and token files for training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/str.h"
#include "weft/data.h"

namespace weft::vocab_command_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

struct Ran {
  int code = -1;
  std::string out, err;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class VocabCommand : public testing::Test {
 protected:
  VocabCommand() : folder_(std::filesystem::path(testing::TempDir()) / str("weft_vocab_", getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream text(at("text.txt"));
    for (int i = 0; i < 2000; ++i)
      text << "the weaver counts " << i * 37 % 500 << " threads and knots " << i % 70 << "\n";
  }
  ~VocabCommand() override { std::filesystem::remove_all(folder_); }

  std::string at(const std::string& name) const { return (folder_ / name).string(); }

  Ran weft(const std::string& arguments, const std::string& input = "") const {
    std::ofstream(at("in"), std::ios::binary) << input;
    const std::string line = str("cd ", folder_.string(), " && ", WEFT_COMMAND, " vocab ", arguments);
    const int status = std::system(str(line, " <in >out 2>err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, content(at("out")), content(at("err"))};
  }

  void expect_refused(const std::string& arguments, const std::string& input, const std::string& what,
                      const std::string& fix) const {
    const Ran ran = weft(arguments, input);
    EXPECT_EQ(ran.code, 2) << arguments << ran.out;
    EXPECT_THAT(ran.err, AllOf(StartsWith("error: "), HasSubstr(what), HasSubstr(fix))) << arguments;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(VocabCommand, TrainsEncodesAndDecodes) {
  const Ran trained = weft("train text.txt --size 320 --out v.model");
  EXPECT_EQ(trained.code, 0);
  EXPECT_EQ(trained.out, "v.model: 320 ids\n");
  EXPECT_THAT(trained.err, IsEmpty()) << "the library is silent";
  const std::string text = "the weaver counts knots\n\nça va?\n";
  const Ran encoded = weft("encode --vocab v.model", text);
  EXPECT_EQ(encoded.code, 0);
  EXPECT_THAT(encoded.out, testing::ContainsRegex("^[0-9 ]+\n\n[0-9 ]+\n$"));
  EXPECT_EQ(weft("decode --vocab v.model", encoded.out).out, text);
}

TEST_F(VocabCommand, Bytes) {
  EXPECT_EQ(weft("encode --vocab bytes", "AB\nC").out, "68 69\n70\n");
  EXPECT_EQ(weft("decode --vocab bytes", "68 69 1 70\n70").out, "AB\nC\n");
}

TEST_F(VocabCommand, WritesTokenFiles) {
  for (const std::string name : {"t.u16", "t.u32", "t.npy"}) {
    ASSERT_EQ(weft("encode --vocab bytes --out " + name, "A\nB\n").code, 0);
    data::SourceOptions options{.files = {at(name)}, .batch = 1, .length = 5, .shuffle = false};
    EXPECT_EQ(data::Batches(options).next()->at("targets").values(), (std::vector<double>{68, 13, 69, 13, 1})) << name;
  }
  EXPECT_FALSE(std::filesystem::exists(at("t.u16.partial")));
}

// A model's bytes: pieces that are a name, a score and a type each.
std::string model_of(int size) {
  std::string model;
  for (int id = 0; id < size; ++id) {
    const std::string name = id == 0 ? "<pad>" : id == 1 ? "</s>" : id == 2 ? "<unk>" : str("x", id);
    const char type = id < 2 ? 3 : id == 2 ? 2 : 1;
    const std::string piece =
        str('\x0a', static_cast<char>(name.size()), name, std::string("\x15\0\0\0\0\x18", 6), type);
    model += str('\x0a', static_cast<char>(piece.size()), piece);
  }
  return model;
}

TEST_F(VocabCommand, LargeVocabulariesNeedWideTokens) {
  std::ofstream(at("large.model"), std::ios::binary) << model_of(65537);
  expect_refused("encode --vocab large.model --out t.u16", "x7", "ids up to 65536 do not fit into 16 bits",
                 "let its name end with .u32");
  EXPECT_EQ(weft("encode --vocab large.model --out t.u32", "x7").code, 0);
}

TEST_F(VocabCommand, Refuses) {
  expect_refused("encode --vocab none.model", "x", "cannot open the file 'none.model'", "a file that you may read");
  expect_refused("encode --vocab text.txt", "x", "the file is no SentencePiece model", "weft vocab train");
  expect_refused("encode --vocab bytes --out t.bin", "x", "'t.bin' is no name for a token file",
                 "let it end with .u16, .u32 or .npy");
  expect_refused("encode --vocab bytes --out t.u16", "", "there is no text to encode", "send text to it");
  expect_refused("decode --vocab bytes", "68 x9\n", "'x9' is no id",
                 "give whole numbers with spaces between them, as weft vocab encode prints them");
  expect_refused("decode --vocab bytes", "\n-4\n", "'-4' is no id", "standard input, line 2");
  expect_refused("decode --vocab bytes", "1.5\n", "'1.5' is no id", "code:  vocab.not-an-id");
  expect_refused("train text.txt --out v.model --size 100000", "", "no vocabulary of 100000 ids can be made",
                 "give more text");
  EXPECT_FALSE(std::filesystem::exists(at("v.model")));
  EXPECT_EQ(weft("encode --vocab bytes --out nowhere/t.u16", "x").code, 3);
}

}  // namespace
}  // namespace weft::vocab_command_test
