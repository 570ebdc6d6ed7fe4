// Files that are missing, cut, changed or never were a checkpoint: a clear error, and what is on disk stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>

#include "checkpoint/training.h"
#include "support/expect_error.h"
#include "train/checkpoint_files.h"
#include "train/checkpoint_index.h"

namespace weft::broken_test {
namespace {

using test::content;
using test::expect_equal;
using test::names_in;
using test::new_folder;
using test::Training;
using ::testing::ElementsAre;

const std::string kFix = "take another checkpoint, or a copy of this checkpoint";
const test::TrainingOptions kPair{.mesh = "model:2", .layout = "hidden:model"};

class CheckpointBroken : public ::testing::Test {
 protected:
  void SetUp() override {
    folder = new_folder("broken");
    Training t(kPair);
    Checkpoints checkpoints(t.session, {.folder = folder});
    checkpoints.save({.step = 1, .texts = {{"config.toml", "a = 1\n"}}});
    checkpoints.wait();
    path = folder + "/step-00000001";
  }

  // Loads on two other meshes: one reads whole pieces, one halves of them.
  void expect_refused(std::initializer_list<const char*> mesh, const std::string& what, const std::string& file) {
    for (const char* text : mesh) {
      Training t({.mesh = text, .layout = "hidden:model?"});
      EXPECT_USER_ERROR(Checkpoint::open(folder).load(t.session), what, path + "/" + file, kFix);
    }
  }

  std::string folder, path;
};

TEST_F(CheckpointBroken, MissingFile) {
  std::filesystem::remove(path + "/shard-1.safetensors");
  const std::string file = path + "/shard-1.safetensors";
  EXPECT_USER_ERROR(Checkpoint::open(folder), "the checkpoint's file '" + file + "' is missing: No such file", file,
                    kFix);
}

TEST_F(CheckpointBroken, TruncatedFile) {
  const std::string file = path + "/shard-0.safetensors";
  const std::size_t bytes = content(file).size();
  std::filesystem::resize_file(file, bytes - 1);
  EXPECT_USER_ERROR(Checkpoint::open(folder),
                    "the checkpoint's file '" + file + "' has " + std::to_string(bytes - 1) +
                        " bytes, but was written with " + std::to_string(bytes),
                    kFix);
}

TEST_F(CheckpointBroken, ChangedByteOfAShard) {
  const std::string file = path + "/shard-1.safetensors", text = content(file);
  for (const std::size_t at : {text.size() - 1, text.size() - 2000}) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    test::write(file, changed);
    expect_refused({"", "model:2", "model:8"}, "the file is broken: the bytes of variable '", "shard-1.safetensors");
    Training t({.mesh = "model:8", .layout = "hidden:model"});
    Checkpoint::open(folder).load(t.session, {.verify = false});  // no processor needs a whole piece
  }
  EXPECT_USER_ERROR(
      {
        const Checkpoint found = Checkpoint::open(folder);
        for (const auto& [name, about] : found.variables()) found.read(name);
      },
      "the file is broken: the bytes of variable '", "' have the checksum ", ", but were written with ");
}

TEST_F(CheckpointBroken, ChangedHeaderOfAShard) {
  const std::string file = path + "/shard-1.safetensors", text = content(file);
  std::string changed = text;
  changed.replace(text.find("F32"), 3, "I32");
  test::write(file, changed);
  expect_refused({"", "model:8"}, "the file has not the piece of variable '", "shard-1.safetensors");
  changed = text;
  changed[12] = '\n';
  test::write(file, changed);
  Training t;
  EXPECT_USER_ERROR(Checkpoint::open(folder).load(t.session), "the header is not JSON", file);
  test::write(file, std::string(text).replace(text.find("F32"), 3, "I32"));
  EXPECT_USER_ERROR(Checkpoint::open(folder).load(t.session), "the file has not the piece of variable '",
                    "' that the index says: ", file);
}

TEST_F(CheckpointBroken, ChangedText) {
  test::write(path + "/config.toml", "a = 2\n");
  EXPECT_USER_ERROR(Checkpoint::open(folder), "the file is not as it was written: its length or checksum is another",
                    path + "/config.toml", kFix);
  std::filesystem::remove(path + "/config.toml");
  EXPECT_USER_ERROR(Checkpoint::open(folder), "cannot read '" + path + "/config.toml', a file of a checkpoint, ",
                    "which is not there or not to be read", kFix);
  test::write(path + "/config.toml", std::string(1000, 'a'));
  EXPECT_USER_ERROR(Checkpoint::open(folder), "which is too long", kFix);
}

TEST_F(CheckpointBroken, AnyByteOfTheIndex) {
  const std::string file = path + "/index.json", text = content(file);
  for (std::size_t at = 0; at < text.size(); at += 7) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    test::write(file, changed);
    EXPECT_USER_ERROR(Checkpoint::open(folder), file) << "byte " << at;
  }
  for (std::size_t length = 0; length < text.size(); length += 101) {
    test::write(file, text.substr(0, length));
    EXPECT_USER_ERROR(Checkpoint::open(folder), file) << length << " bytes";
  }
}

TEST_F(CheckpointBroken, Latest) {
  test::write(folder + "/latest", "step-00000009\n");
  EXPECT_USER_ERROR(Checkpoint::latest(folder), "'latest' names 'step-00000009', where there is no checkpoint",
                    folder + "/latest",
                    "write into 'latest' the name of a checkpoint that is there, such as step-00000001");
  test::write(folder + "/latest", "../../x");
  EXPECT_USER_ERROR(Checkpoint::open(folder), "'latest' names '../../x', where there is no checkpoint");
  std::filesystem::remove(path + "/index.json");
  EXPECT_USER_ERROR(Checkpoint::open(folder), "where there is no checkpoint", "remove 'latest' to begin anew");
  std::filesystem::remove(folder + "/latest");
  EXPECT_FALSE(Checkpoint::latest(folder).has_value());
  EXPECT_FALSE(Checkpoint::latest(folder + "/nothing").has_value());
  EXPECT_USER_ERROR(Checkpoint::open(folder + "/nothing"), "there is no checkpoint in '" + folder + "/nothing'",
                    "give the folder of a checkpoint, which has an index.json, or a folder of checkpoints");
}

TEST_F(CheckpointBroken, AnUnfinishedOneIsSkipped) {
  std::filesystem::remove(folder + "/latest");
  std::filesystem::create_directories(folder + "/step-00000002");
  std::filesystem::create_directories(folder + "/.step-00000003.partial");
  EXPECT_EQ(Checkpoint::open(folder).state().step, 1);
}

// What an index says; one that is changed has a new checksum.
class CheckpointIndex : public ::testing::Test {
 protected:
  static checkpoint::Index good() {
    checkpoint::Index index{.step = 3, .mesh = "a:2", .variables = {}, .files = {}, .texts = {}};
    index.files = {{"shard-0.safetensors", 100}, {"shard-1.safetensors", 100}};
    index.texts = {{"config.toml", {5, 77}}};
    index.variables["w"] = {{.shape = {{"a", 4}, {"b", 6}}, .dtype = DType::kF32, .slot_of = ""},
                            {{"shard-0.safetensors", {0, 0}, {4, 3}, 1}, {"shard-1.safetensors", {0, 3}, {4, 3}, 2}}};
    index.variables["w.m"] = {{.shape = {}, .dtype = DType::kF32, .slot_of = "w"},
                              {{"shard-0.safetensors", {}, {}, 3}}};
    return index;
  }

  static void expect_refused(const checkpoint::Index& index, const std::string& what) {
    EXPECT_USER_ERROR(checkpoint::parse_index("i.json", checkpoint::to_text(index)), what, "i.json", kFix);
  }

  // The text with one part replaced; its checksum is not looked at.
  static void expect_refused(const std::string& from, const std::string& to, const std::string& what) {
    std::string text = checkpoint::to_text(good());
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    EXPECT_USER_ERROR(checkpoint::parse_unchecked("i.json", text, true), what, "i.json", kFix);
    EXPECT_USER_ERROR(checkpoint::parse_index("i.json", text), "i.json", kFix);
  }
};

TEST_F(CheckpointIndex, GoesThereAndBack) {
  const std::string text = checkpoint::to_text(good());
  const checkpoint::Index index = checkpoint::parse_index("i.json", text);
  EXPECT_EQ(checkpoint::to_text(index), text);
  EXPECT_EQ(index.variables.at("w").pieces[1].begin, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(index.variables.at("w.m").variable.slot_of, "w");
}

TEST_F(CheckpointIndex, PiecesMakeTheWholeOnce) {
  checkpoint::Index index = good();
  auto& pieces = index.variables["w"].pieces;
  pieces.pop_back();
  expect_refused(index, "variable 'w' lacks the piece [4 3] at [0 3]");
  EXPECT_NO_THROW(checkpoint::parse_index("i.json", checkpoint::to_text(index), false));  // of one process
  pieces.clear();
  expect_refused(index, "variable 'w' has no pieces");
  for (const std::int64_t begin : {0, 2}) {
    index = good();
    index.variables["w"].pieces[1].begin = {0, begin};
    expect_refused(index,
                   "variable 'w': the piece [4 3] at [0 " + std::to_string(begin) + "] overlaps others or leaves gaps");
  }
  index = good();
  index.variables["w"].pieces[1].sizes = {2, 3};
  expect_refused(index, "the piece [2 3] at [0 3] overlaps others or leaves gaps");
  for (const auto& [begin, sizes] : {std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>{{0, 4}, {4, 3}},
                                     {{0}, {4}},
                                     {{0, 0}, {4, 0}},
                                     {{0, INT64_MAX}, {4, INT64_MAX}}}) {
    index = good();
    index.variables["w"].pieces[1].begin = begin;
    index.variables["w"].pieces[1].sizes = sizes;
    expect_refused(index, "variable 'w' [a=4 b=6] has no place for the piece " + checkpoint::list_text(sizes) + " at " +
                              checkpoint::list_text(begin));
  }
  index = good();
  index.variables["w"].pieces[1].file = "shard-0.safetensors";
  expect_refused(index, "variable 'w' has two pieces in shard-0.safetensors");
  index.variables["w"].pieces[1].file = "shard-7.safetensors";
  expect_refused(index, "variable 'w' lies in 'shard-7.safetensors', which is not among the files");
}

TEST_F(CheckpointIndex, NamesStayInTheFolder) {
  for (const char* name : {"../x", "/etc/passwd", ".x", "a\\b", ""}) {
    checkpoint::Index index = good();
    index.files[name] = 5;
    expect_refused(index, std::string("'") + name + "' is no name of a file in the checkpoint");
    index = good();
    index.texts[name] = {5, 5};
    expect_refused(index, std::string("'") + name + "' is no name of a text in the checkpoint");
  }
}

TEST_F(CheckpointIndex, EverythingIsWhatTheFormatSays) {
  expect_refused("\"version\":1", "\"version\":2", "the checkpoint has version 2, but this program reads 1");
  expect_refused("\"version\":1", "\"version\":\"1\"", "version is no number from 0 on");
  expect_refused("weft checkpoint", "another", "the index is of no checkpoint of ours");
  expect_refused("\"step\":3", "\"step\":-3", "step is no number from 0 on");
  expect_refused("\"step\":3", "\"step\":3.5", "step is no number from 0 on");
  expect_refused("\"step\":3", "\"step\":18446744073709551615", "step is no number from 0 on");
  expect_refused("\"step\":3", "\"steps\":3", "the index has an unknown key 'steps'");
  expect_refused("\"step\":3,", "", "the index lacks its 'step'");
  expect_refused("\"step\":3,", "", "code:  checkpoint-index.missing-key");
  expect_refused("\"step\":3", "\"step\":3,\"step\":3", "the index names 'step' twice in one place");
  expect_refused("\"mesh\":\"a:2\"", "\"mesh\":7", "mesh is no text");
  expect_refused("\"mesh\":\"a:2\"", "\"mesh\":7", "code:  checkpoint-index.not-a-text");
  expect_refused("\"f32\"", "\"f31\"", "variable 'w': there is no dtype 'f31'");
  expect_refused("[\"a\",\"b\"]", "[\"a\",\"a\"]", "variable 'w': ");
  expect_refused("[\"a\",\"b\"]", "[\"a\"]", "variable 'w' has not a dim for each of its 2 sizes");
  expect_refused("[4,6]", "[4,0]", "variable 'w': dim 'b' has size 0");
  expect_refused("[4,6]", "[4,0]", "code:  checkpoint-index.bad-shape");
  expect_refused("[4,6]", "[4611686018427387904,6]", "variable 'w': dim 'a' has size 4611686018427387904");
  expect_refused("[4,6]", "{}", "variable 'w', sizes, is no list");
  expect_refused("[4,6]", "{}", "code:  checkpoint-index.not-a-list");
  expect_refused("\"slot_of\":\"w\"", "\"slot_off\":\"w\"", "variable 'w.m' has an unknown key 'slot_off'");
  expect_refused("\"pieces\":[", "\"pieces\":7,\"slot_of\":[", "variable 'w', slot_of, is no text");
  expect_refused("00000001", "0000001g", "variable 'w', a piece, crc32c, is no checksum of 8 digits");
  expect_refused("\"begin\":[0,0],", "", "variable 'w', a piece lacks its 'begin'");
  expect_refused("\"bytes\":5,", "", "text 'config.toml' lacks its 'bytes'");
  expect_refused("\"files\":{", "\"files\":[],\"x\":{", "the index has an unknown key 'x'");
  expect_refused("{\"format\"", "[[[[[[[[[[[[{\"format\"", "the index is nested deeper than its format");
  expect_refused("{\"format\"", "{\"format", "the index is not JSON: ");
  const std::string all = checkpoint::to_text(good());
  const auto from_to = [&](const std::string& begin, const std::string& end) {
    const std::size_t at = all.find(begin);
    return all.substr(at, all.find(end, at) + end.size() - at);
  };
  expect_refused(from_to("\"pieces\":[", "}]"), "\"pieces\":7", "variable 'w', pieces, is no list");
  expect_refused(from_to("\"files\":{", "}"), "\"files\":7", "'files' is no object");
  EXPECT_USER_ERROR(checkpoint::parse_index("i.json", "[]"), "the index is no object", kFix);
  std::string text = checkpoint::to_text(good());
  text.replace(text.find("\"step\":3"), 8, "\"step\":4");
  EXPECT_USER_ERROR(checkpoint::parse_index("i.json", text),
                    "the index is not as it was written: its checksum is another", kFix);
}

TEST(CheckpointChecksum, IsCrc32c) {
  EXPECT_EQ(checkpoint::crc32c("123456789"), 0xE3069283u);
  const std::string zeros(32, '\0');
  EXPECT_EQ(checkpoint::crc32c(zeros), 0x8A9136AAu);
  const std::string text = "any text, in two parts of any length";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    const std::uint32_t first = checkpoint::crc32c(0, bytes.first(cut));
    EXPECT_EQ(checkpoint::crc32c(first, bytes.subspan(cut)), checkpoint::crc32c(text));
  }
}

// ---- Where nothing can be written

class CheckpointDisk : public ::testing::Test {
 protected:
  // Tries to save; the error of an asynchronous save comes with wait().
  static void expect_failed(Checkpoints& checkpoints, std::int64_t step, const std::string& what) {
    EXPECT_RUN_ERROR(
        {
          checkpoints.save({.step = step});
          checkpoints.wait();
        },
        what, "see that its folder exists, that you may write there and that the disk has room");
  }
};

TEST_F(CheckpointDisk, AFileInsteadOfAFolder) {
  const std::string folder = new_folder("file");
  test::write(folder, "");
  Training t;
  EXPECT_RUN_ERROR(Checkpoints(t.session, {.folder = folder}), folder, "see that its folder exists");
  EXPECT_RUN_ERROR(Checkpoints(t.session, {.folder = folder + "/below"}), "cannot make '" + folder + "/below'");
}

TEST_F(CheckpointDisk, NoMoreFilesOfThatSize) {
  const std::string folder = new_folder("limit");
  Training t;
  Checkpoints checkpoints(t.session, {.folder = folder});
  checkpoints.save({.step = 1});
  checkpoints.wait();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  expect_failed(checkpoints, 2,
                "cannot write '" + folder + "/.step-00000002.partial/shard-0.safetensors': File too large");
  // The error may also come with the next save, which then is not begun.
  checkpoints.save({.step = 3});
  EXPECT_RUN_ERROR(checkpoints.save({.step = 4}), "File too large");
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000001"));
  EXPECT_EQ(Checkpoint::open(folder).state().step, 1);
  checkpoints.save({.step = 5});
  checkpoints.wait();
  EXPECT_EQ(Checkpoint::open(folder).state().step, 5);
}

TEST_F(CheckpointDisk, Full) {
  const std::string folder = new_folder("full");
  std::filesystem::create_directories(folder);
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=96k") != 0) GTEST_SKIP() << "no right to mount";
  {
    Training t;
    Checkpoints checkpoints(t.session, {.folder = folder, .keep = 0});
    std::string found;
    try {
      for (int step = 1; step < 30; ++step) checkpoints.save({.step = step});
    } catch (const RunError& error) {
      found = error.what();
    }
    EXPECT_THAT(found, ::testing::HasSubstr("No space left on device"));
    const Checkpoint last = Checkpoint::open(folder);
    Training other;
    last.load(other.session);
    expect_equal(other.values(), t.values());
  }
  umount(folder.c_str());
}

TEST_F(CheckpointDisk, ReadOnly) {
  const std::string folder = new_folder("readonly");
  std::filesystem::create_directories(folder);
  if (mount("none", folder.c_str(), "tmpfs", 0, "size=1m") != 0) GTEST_SKIP() << "no right to mount";
  {
    Training t;
    {
      Checkpoints checkpoints(t.session, {.folder = folder});
      checkpoints.save({.step = 1});
      checkpoints.wait();
    }
    mount("none", folder.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr);
    EXPECT_RUN_ERROR(Checkpoints(t.session, {.folder = folder}), "Read-only file system", folder);
    Checkpoint::open(folder).load(t.session);
  }
  umount(folder.c_str());
}

}  // namespace
}  // namespace weft::broken_test
