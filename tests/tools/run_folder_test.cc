// The folder of a run has all that its use needs: it works from any folder, after a move, over any wire, and with no other
// vocabulary than its own.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/command.h"
#include "support/expect_error.h"
#include "weft/detail/train_parts.h"

namespace weft::run_folder_test {
namespace {

namespace fs = std::filesystem;
using test::ran;
using test::Ran;
using ::testing::AllOf;
using ::testing::HasSubstr;

const char* const kConfig = R"(
name = "lm"
[model]
d_model = 16
heads = 2
d_kv = 8
d_ff = 32
layers = 1
vocab_divisor = 4
positions = "rotary"
[data]
format = "text"
train = "words.txt"
dev = "words.txt"
vocabulary = "words.model"
[batch]
sequences = 4
length = 16
[optimizer]
name = "adam"
schedule = "constant 0.01"
[run]
steps = 4
[decode]
max_length = 12
)";

// A folder with a text, a vocabulary and a config whose paths are relative to it. Every command runs there.
class RunFolder : public ::testing::Test {
 protected:
  RunFolder()
      : home_(fs::path(::testing::TempDir() + "/weft_run_folder_" + std::to_string(getpid())).lexically_normal()) {
    fs::remove_all(home_);
    fs::create_directories(home_ + "/start");
    write("start/words.txt", lines({"one", "two", "three", "four", "loom", "weave", "mend", "wool"}));
    write("start/other.txt", lines({"other", "words", "altogether", "sea", "boat", "river", "ice", "sail"}));
    write("start/lm.toml", kConfig);
    for (const char* name : {"words", "other"})
      done("vocab train --size 280 --out " + std::string(name) + ".model " + name + ".txt");
    done("train lm.toml --out run");
  }
  ~RunFolder() override { fs::remove_all(home_); }

  static std::string lines(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < 600; ++i) text += words[(i * i + i / 7) % words.size()] + (i % 6 == 5 ? "\n" : " ");
    return text;
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(home_ + "/" + name) << text; }

  Ran weft(const std::string& line, const std::string& folder = "start") const {
    return ran("cd " + home_ + "/" + folder + " && " + WEFT_COMMAND + " " + line + " 2>&1");
  }
  std::string done(const std::string& line, const std::string& folder = "start") const {
    const Ran result = weft(line, folder);
    EXPECT_EQ(result.code, 0) << line << "\n" << result.output;
    return result.output;
  }
  void expect_refused(const std::string& line, const std::string& what, const std::string& fix) const {
    const Ran result = weft(line);
    EXPECT_EQ(result.code, 2) << line << "\n" << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr(what), HasSubstr(fix))) << line;
  }

  std::string home_;
};

const char* const kGenerate = " --quiet --prompt 'one two' --length 16";

TEST_F(RunFolder, WorksFromAnotherFolderAndAfterAMove) {
  const std::string text = done(std::string("generate run") + kGenerate), score = done("eval run --json");
  fs::create_directories(home_ + "/far/away");
  fs::rename(home_ + "/start/run", home_ + "/far/moved");
  fs::remove(home_ + "/start/words.model");
  EXPECT_EQ(done(std::string("generate ../moved") + kGenerate, "far/away"), text);
  EXPECT_EQ(done(std::string("generate moved/step-00000004") + kGenerate, "far"), text);
  const std::string there = done("eval moved --json", "far");
  EXPECT_EQ(there.substr(there.find("\"tokens\"")), score.substr(score.find("\"tokens\"")));
  done("export moved --out plain.safetensors", "far");
  // A checkpoint by itself is enough, too.
  fs::copy(home_ + "/far/moved/step-00000004", home_ + "/far/alone", fs::copy_options::recursive);
  fs::remove_all(home_ + "/far/moved");
  EXPECT_EQ(done(std::string("generate alone") + kGenerate, "far"), text);
}

TEST_F(RunFolder, GoesOnWithItsOwnConfig) {
  fs::rename(home_ + "/start/run", home_ + "/moved");
  fs::remove(home_ + "/start/words.model");
  fs::remove(home_ + "/start/lm.toml");
  EXPECT_THAT(done("train moved --steps 6 --set run.keep=1", "."),
              AllOf(HasSubstr("going on from moved/step-00000004"),
                    HasSubstr("done at step 6; checkpoints and metrics are in moved")));
  EXPECT_TRUE(fs::exists(home_ + "/moved/step-00000006/vocabulary.model"));
  done("train moved --steps 7", ".");
  fs::rename(home_ + "/start/words.txt", home_ + "/text");
  const Ran refused = weft("train moved --steps 8", ".");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("setting 'data.train' names the file '" + home_ +
                                              "/start/words.txt', which is not there"),
                                    HasSubstr("give the path where it is now: --set 'data.train=[\"PATH\"]'")));
  done("train moved --steps 8 --set 'data.train=[\"text\"]' --set 'data.dev=[\"text\"]'", ".");
  const Ran eval = weft("eval moved --set 'data.dev=[\"gone.txt\"]'", ".");
  EXPECT_EQ(eval.code, 2);
  EXPECT_THAT(eval.output, AllOf(HasSubstr("the run's data.dev names the file 'gone.txt', which is not there"),
                                 HasSubstr("name the files where they are now: --data PATH")));
}

TEST_F(RunFolder, UsesNoOtherVocabulary) {
  const std::string text = done(std::string("generate run") + kGenerate);
  fs::copy(home_ + "/start/other.model", home_ + "/start/words.model", fs::copy_options::overwrite_existing);
  EXPECT_EQ(done(std::string("generate run") + kGenerate), text) << "it has its own";
  const std::string own = "run/step-00000004/vocabulary.model";
  for (const char* line : {"generate run --set data.vocabulary=words.model",
                           "eval run --set data.vocabulary=words.model", "train lm.toml --out run --steps 6"})
    expect_refused(line, "the vocabulary 'words.model' (fingerprint ",
                   "use the vocabulary of the run: --set data.vocabulary=" + own +
                       "; if another is meant, add --allow-change data.vocabulary");
  done("generate run --allow-change data.vocabulary --set data.vocabulary=words.model");
  expect_refused("generate run --set data.vocabulary=bytes",
                 "the vocabulary 'bytes' (fingerprint bytes) is not the vocabulary that 'run/step-00000004' was trained with "
                 "(fingerprint ",
                 own);
  done("train lm.toml --out run --steps 6 --set data.vocabulary=" + own);
  std::ofstream(home_ + "/start/run/step-00000004/vocabulary.model", std::ios::app) << "x";
  expect_refused("generate run/step-00000004", "a file of a checkpoint, which is too long", "take another checkpoint");
}

// A checkpoint as it was written before checkpoints had copies of their vocabulary.
TEST_F(RunFolder, WithoutACopyIsHeldToTheFingerprint) {
  const std::string text = done(std::string("generate run") + kGenerate);
  const Checkpoint run = Checkpoint::open(home_ + "/start/run");
  train::Config config = train::stored_config(run);
  config.data.vocabulary = "words.model";
  config.mesh.wire = "mpi";
  write_checkpoint(
      home_ + "/start/old/step-00000004",
      {.step = 4, .texts = {{"config.toml", train::text(config)}, {"data.json", run.state().texts.at("data.json")}}},
      run.variables(), [&](const std::string& name) { return run.read(name); });
  EXPECT_EQ(done(std::string("generate old") + kGenerate), text);
  done("train lm.toml --out old --steps 5");
  EXPECT_TRUE(fs::exists(home_ + "/start/old/step-00000005/vocabulary.model"));
  const std::string first = "old/step-00000004";
  fs::rename(home_ + "/start/words.model", home_ + "/start/kept.model");
  expect_refused("generate " + first, "the vocabulary 'words.model' is not there, and 'old/step-00000004' needs it",
                 "give its path: --set data.vocabulary=PATH");
  EXPECT_EQ(done("generate " + first + " --set data.vocabulary=kept.model" + kGenerate), text);
  fs::rename(home_ + "/start/other.model", home_ + "/start/words.model");
  expect_refused("generate " + first, "the vocabulary 'words.model' (fingerprint ",
                 "give the path of the vocabulary of its training: --set data.vocabulary=PATH");
}

TEST_F(RunFolder, IsMadeByImportToo) {
  const std::string text = done(std::string("generate run") + kGenerate);
  done("export run --out plain.safetensors");
  done("import plain.safetensors --config lm.toml --out back/step-00000000");
  fs::remove(home_ + "/start/words.model");
  fs::rename(home_ + "/start/back", home_ + "/back");
  EXPECT_EQ(done(std::string("generate ../back") + kGenerate), text);
}

TEST_F(RunFolder, GivesItsWeightsToANewRun) {
  expect_refused("train lm.toml --out new --set model.layers=2 --init-from run",
                 "the checkpoint lacks variables that the session has: layer_1/", "--rename OLD=NEW");
  const std::string words = "train lm.toml --out new --set model.layers=2 --init-from run --rename layer_0/=layer_1/";
  EXPECT_THAT(done(words), AllOf(HasSubstr("beginning with the weights of run"), HasSubstr("step 1 of 4")));
  EXPECT_THAT(done(words + " --steps 5"),
              AllOf(HasSubstr("going on from new/step-00000004"),
                    HasSubstr("the run has begun already: the weights of run are not used")));
  expect_refused("train lm.toml --out new2 --init-from run --rename layer_0", "'layer_0' renames nothing",
                 "write OLD=NEW, whole names of variables or beginnings that end in \"/\", as layer_0/=layer_1/");
  expect_refused("train lm.toml --out new2 --allow-missing", "--init-from", "");
  expect_refused("generate run --set model.activation=gelu", "model.activation is [\"relu\"] there and [\"gelu\"] here",
                 "--allow-change model.activation");
  done("generate run --set model.activation=gelu --allow-change model.activation");
}

TEST_F(RunFolder, HasNoWire) {
  if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  const Ran trained =
      test::mpirun(2, "-wdir " + home_ + "/start " + WEFT_COMMAND +
                          " train lm.toml --out ranks --wire mpi --mesh data:2 --layout batch:data 2>&1");
  ASSERT_EQ(trained.code, 0) << trained.output;
  const std::string text = done(std::string("generate ranks") + kGenerate);
  EXPECT_THAT(text, HasSubstr("one two"));
  const Checkpoint run = Checkpoint::open(home_ + "/start/ranks");
  EXPECT_EQ(run.state().texts.at("config.toml").find("wire ="), std::string::npos);
  done("train ranks --steps 6");
}

}  // namespace
}  // namespace weft::run_folder_test
