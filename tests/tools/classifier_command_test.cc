// weft train, eval and the rest with a task that is no Transformer.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/command.h"

namespace weft::classifier_command_test {
namespace {

using test::ran;
using test::Ran;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

class ClassifierCommand : public ::testing::Test {
 protected:
  ClassifierCommand() : folder_(::testing::TempDir() + "/weft_classifier_" + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream texts(folder_ + "/texts.tsv");
    for (int i = 0; i < 90; ++i)
      texts << "number " << i << (i % 2 == 0 ? " goes up" : " goes down") << "\t" << (i % 2 == 0 ? "up" : "down")
            << "\n";
    std::ofstream(config_)
        << "name = \"texts\"\n[model]\nkind = \"text_classifier\"\nlabels = [\"up\", \"down\"]\nd_model "
           "= 8\nd_ff = 16\n[data]\ntrain = \""
        << folder_ << "/texts.tsv\"\ndev = \"" << folder_
        << "/texts.tsv\"\n[batch]\nsequences = 8\ninputs_length = 24\n[optimizer]\nname = \"adam\"\n"
           "schedule = \"constant 0.01\"\n[run]\nsteps = 40\nlog_every = 10\n";
  }
  ~ClassifierCommand() override { std::filesystem::remove_all(folder_); }

  static Ran weft(const std::string& line) { return ran(std::string(WEFT_COMMAND) + " " + line + " 2>&1"); }
  std::string out(const std::string& name) const { return folder_ + "/" + name; }
  Json evaluated(const std::string& name) const {
    const Ran done = weft("eval " + out(name) + " --json");
    EXPECT_EQ(done.code, 0) << done.output;
    Json report = Json::parse(done.output);
    report.erase("model");
    return report;
  }

  std::string folder_, config_ = folder_ + "/texts.toml";
};

TEST_F(ClassifierCommand, TrainsEvaluatesAndResumes) {
  const Ran whole = weft("train " + config_ + " --out " + out("whole"));
  EXPECT_EQ(whole.code, 0) << whole.output;
  EXPECT_THAT(whole.output, AllOf(HasSubstr("step        8 sequences of 24 inputs, 192 tokens"),
                                  HasSubstr("step 40 of 40  loss "), HasSubstr("dev at step 40  cross_entropy "),
                                  HasSubstr("  accuracy "), HasSubstr("done at step 40")));

  const std::string parts = "train " + config_ + " --out " + out("parts") + " --set run.checkpoint_every=10";
  EXPECT_NE(weft(parts + " --fail-at step:25").code, 0);
  const Ran rest = weft(parts);
  EXPECT_EQ(rest.code, 0) << rest.output;
  EXPECT_THAT(rest.output, HasSubstr("going on from " + out("parts") + "/step-000000"));

  const Json report = evaluated("whole");
  EXPECT_EQ(report["examples"], 90);
  EXPECT_GT(report["accuracy"], 0.9);
  EXPECT_FALSE(report.contains("log_perplexity"));
  EXPECT_EQ(evaluated("parts"), report) << "the resumed run has the weights of the whole one";
}

TEST_F(ClassifierCommand, OtherCommandsKnowTheKind) {
  ASSERT_EQ(weft("train " + config_ + " --quiet --steps 2 --out " + out("run")).code, 0);
  const Ran printed = weft("train " + config_ + " --print-config");
  EXPECT_THAT(printed.output, AllOf(HasSubstr("kind = \"text_classifier\""), HasSubstr("labels = [\"up\", \"down\"]"),
                                    Not(HasSubstr("heads = "))));
  EXPECT_THAT(weft("train " + config_ + " --dry-run --mesh data:2 --layout batch:data").output,
              HasSubstr("2 processors"));
  for (const std::string& line :
       {"generate " + out("run") + " --prompt up", "translate " + out("run") + " " + config_}) {
    const Ran refused = weft(line);
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("is a model of kind 'text_classifier', which makes no text"));
  }
  EXPECT_THAT(weft("eval " + out("run") + " --bleu").output,
              HasSubstr("is a model of kind 'text_classifier', which translates nothing"));
  ASSERT_EQ(weft("eval " + out("run") + " --per-line " + out("lines.txt")).code, 0);
  std::ifstream lines(out("lines.txt"));
  int count = 0;
  double log_probability = 0, correct = 0;
  while (lines >> log_probability >> correct) {
    EXPECT_LT(log_probability, 0);
    EXPECT_TRUE(correct == 0 || correct == 1);
    ++count;
  }
  EXPECT_EQ(count, 90);
}

}  // namespace
}  // namespace weft::classifier_command_test
