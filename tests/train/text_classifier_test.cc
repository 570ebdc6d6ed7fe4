// A task that is no Transformer goes the whole way of a run: it learns, is evaluated, resumes, and runs on meshes.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "small_commands.h"
#include "support/expect_error.h"

namespace weft::train::text_classifier_test {
namespace {

const char* const kClassifier =
    "name = \"texts\"\n[model]\nkind = \"text_classifier\"\nlabels = [\"hot\", \"cold\", \"wet\"]\nd_model = 8\nd_ff = "
    "16\n"
    "width = 3\ndropout = 0.1\n[data]\nformat = \"tsv\"\n[batch]\nsequences = 12\ninputs_length = "
    "24\n[optimizer]\nname = "
    "\"adam\"\nschedule = \"constant 0.02\"\n[run]\nsteps = 12\nlog_every = 1\nseed = 5\n";

// A folder with pairs of a text and its label: a word of the text says which.
struct Texts : SmallRun {
  explicit Texts(const std::string& name, const std::string& more = "") : SmallRun("text_classifier_" + name) {
    config = parse_config(kClassifier);
    config.data.train = {write("texts.tsv", 300, 3)};
    config.data.dev = {write("dev.tsv", 50, 4)};
    if (!more.empty()) set(config, more);
  }

  std::string write(const std::string& name, int count, unsigned seed) const {
    const std::vector<std::vector<std::string>> words = {{"fire", "sun"}, {"ice", "snow"}, {"rain", "sea"}};
    const std::vector<std::string> labels = {"hot", "cold", "wet"}, others = {"a", "of", "the", "big"};
    std::mt19937 draw(seed);
    std::ofstream file(folder + "/" + name);
    for (int i = 0; i < count; ++i) {
      const std::size_t label = draw() % labels.size();
      file << others[draw() % others.size()] << " " << words[label][draw() % 2] << " " << others[draw() % others.size()]
           << "\t" << labels[label] << "\n";
    }
    return folder + "/" + name;
  }
};

std::vector<double> joined(std::vector<double> first, const std::vector<double>& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

TEST(TextClassifier, LearnsAndIsEvaluated) {
  const Texts run("learns", "run.steps=100,run.eval_every=50");
  const Trained done = train(run.with(""), kQuiet);
  EXPECT_GT(done.losses.front(), 0.8);
  EXPECT_LT(done.losses.back(), 0.2);
  ASSERT_TRUE(done.dev);
  EXPECT_EQ(done.dev->metric("examples"), 50) << "rows that fill up the last batch do not count";
  EXPECT_GT(done.dev->metric("accuracy"), 0.95);
  TrainedModel model(run.folder + "/out");
  const Evaluation again = model.evaluate(run.config.data.dev);
  EXPECT_EQ(again.sums, done.dev->sums);
  const std::vector<Sums> each = model.evaluate_each(run.config.data.dev);
  ASSERT_EQ(each.size(), 50u);
  double correct = 0;
  for (const Sums& one : each) correct += one.at("correct");
  EXPECT_EQ(correct, again.sums.at("correct"));
}

TEST(TextClassifier, LogsItsMetrics) {
  const Texts run("metrics", "run.steps=2");
  train(run.with(""), kQuiet);
  std::ifstream lines(run.folder + "/out/metrics.jsonl");
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_TRUE(all[0].contains("accuracy")) << all[0];
  EXPECT_TRUE(all[0].contains("loss"));
  EXPECT_TRUE(all[2].contains("dev/cross_entropy")) << all[2];
  EXPECT_TRUE(all[2].contains("dev/accuracy"));
  EXPECT_FALSE(all[2].contains("dev/examples"));
}

TEST(TextClassifier, GoesOnBitForBit) {
  const Texts run("resume", "mesh.mesh=data:2,mesh.layout=batch:data");
  const Trained whole = train(run.with("", "whole"), kQuiet);
  const Trained begin = train(run.with("run.steps=5", "parts"), kQuiet);
  const Trained rest = train(run.with("", "parts"), kQuiet);
  EXPECT_EQ(rest.first, 5);
  EXPECT_EQ(joined(begin.losses, rest.losses), whole.losses);
  EXPECT_EQ(rest.dev->sums, whole.dev->sums);
}

TEST(TextClassifier, MeshesAndMicrobatchesAgree) {
  const Texts run("meshes", "run.steps=4,run.f64=true,model.dropout=0.0");
  const std::vector<double> one = train(run.with("", "one"), kQuiet).losses;
  for (const std::string more : {"mesh.mesh=a:2,mesh.layout=batch:a", "mesh.mesh=a:4,mesh.layout=d_ff:a",
                                 "mesh.mesh=a:2 b:2,mesh.layout=batch:a d_model:b",
                                 "mesh.mesh=a:2,mesh.layout=inputs_length:a", "batch.microbatches=3"}) {
    SCOPED_TRACE(more);
    const std::vector<double> many = train(run.with(more, "many"), kQuiet).losses;
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(many[i], one[i], 1e-9);
    std::filesystem::remove_all(run.folder + "/many");
  }
}

// Each rank finds the labels of its own rows; the other rows are padding.
TEST(TextClassifier, RanksMakeTheLossesOfThreads) {
  if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  const Texts run("ranks", "run.steps=5,mesh.mesh=a:2,mesh.layout=batch:a");
  run.write_config();
  const test::Ran threads = test::ran(train_command(run, "threads"));
  const test::Ran ranks = test::mpirun(2, train_command(run, "ranks", "--set mesh.wire=mpi"));
  EXPECT_EQ(threads.code, 0) << threads.output;
  EXPECT_EQ(ranks.code, 0) << ranks.output;
  EXPECT_EQ(losses_in(run.folder + "/threads").size(), 5u);
  EXPECT_EQ(losses_in(run.folder + "/ranks"), losses_in(run.folder + "/threads"));
}

TEST(TextClassifier, RefusesWhatCannotBe) {
  const Texts run("refuses");
  const auto refused = [&](const std::string& more) { train(run.with(more), kQuiet); };
  EXPECT_USER_ERROR(refused("model.labels=[\"hot\", \"hot\"]"),
                    "a text classifier has two labels or more, all different, but labels has 2 with 1 different",
                    "--set model.labels=", "list the targets of the data: labels = [\"no\", \"yes\"]");
  EXPECT_USER_ERROR(refused("model.width=0"), "width cannot be 0", "--set model.width=0", "give at least 1",
                    "code:  text-classifier.bad-size");
  EXPECT_USER_ERROR(refused("model.dropout=1.0"), "dropout cannot be 1.0", "give a number from 0 on and below 1");
  EXPECT_USER_ERROR(refused("model.labels=[\"hot\", \"cold\"]"),
                    "a text of the data has the label 'wet', which is none of model.labels (hot, cold)",
                    "--set model.labels=", "add the label to model.labels, or correct the data");
  EXPECT_USER_ERROR(refused("model.labels=[\"hot\", \"col\", \"we\"]"), "has the label '");
  EXPECT_USER_ERROR(refused("data.format=lines"), "the data has no feature 'inputs', which the model needs");
  train(run.with("run.steps=1"), kQuiet);
  EXPECT_USER_ERROR(TrainedModel(run.folder + "/out").generate({"a fire"}),
                    "'" + run.folder + "/out/step-00000001' is a model of kind 'text_classifier', which makes no text",
                    "use weft eval, which says how well it does on files");
  EXPECT_USER_ERROR(train(run.with("model.labels=[\"cold\", \"hot\", \"wet\"],run.steps=2"), kQuiet),
                    "model.labels is [\"hot\", \"cold\", \"wet\"] there and [\"cold\", \"hot\", \"wet\"] here");
}

TEST(TextClassifier, SettingsBelongToTheKind) {
  EXPECT_USER_ERROR(parse_config("[model]\nkind = \"text_classifier\"\nheads = 4\n", "c.toml"),
                    "a model of kind 'text_classifier' has no setting 'model.heads'", "c.toml:3",
                    "leave it out: it is for the kinds lm, encoder_decoder, encoder");
  EXPECT_USER_ERROR(parse_config("[model]\nkind = \"text_clasifier\"\n"),
                    "setting 'model.kind' cannot be 'text_clasifier'",
                    "did you mean 'text_classifier'? it is one of: lm, encoder_decoder, encoder, text_classifier");
  EXPECT_USER_ERROR(parse_config("[model]\nkind = \"text_classifier\"\nlabel = []\n"),
                    "there is no setting 'model.label'", "did you mean 'model.labels'?");
  Config config = parse_config("[model]\nd_ff = 7\n", "lm.toml");
  set(config, "model.kind=text_classifier");
  EXPECT_THAT(text(config), ::testing::HasSubstr("d_ff = 7"));
  EXPECT_THAT(text(config), ::testing::Not(::testing::HasSubstr("heads = ")));
  EXPECT_EQ(text(parse_config(text(config))), text(config));
  config = parse_config("[model]\nheads = 7\n", "lm.toml");
  EXPECT_USER_ERROR(set(config, "model.kind=text_classifier"), "has no setting 'model.heads'", "lm.toml:2");
}

TEST(TextClassifier, AnotherKindIsAnotherModel) {
  const Texts run("kinds");
  train(run.with("run.steps=1"), kQuiet);
  Config config = parse_config("[data]\nformat = \"tsv\"\n[optimizer]\nname = \"adam\"\n");
  config.data.train = run.config.data.train;
  config.run.out = run.folder + "/out";
  EXPECT_USER_ERROR(train(config, kQuiet), "model.kind is \"text_classifier\" there and \"lm\" here");
  EXPECT_USER_ERROR(train(config, {.progress = false, .allow_change = {"model.kind"}}),
                    "the model is another than that of '");
}

}  // namespace
}  // namespace weft::train::text_classifier_test
