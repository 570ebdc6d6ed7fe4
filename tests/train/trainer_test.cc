#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <set>

#include "small_run.h"
#include "support/expect_error.h"
#include "train/checkpoint_files.h"

namespace weft::train::trainer_test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> checkpoints_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().filename().string().starts_with("step-")) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(Trainer, LearnsAndLeavesCheckpointsAndMetrics) {
  const SmallRun run("learns", "run.steps=60,model.dropout=0,run.checkpoint_every=20,run.keep=2");
  Config config = run.config;
  config.data.dev = {run.text_path()};
  config.run.eval_batches = 2;
  const Trained done = train(config, kQuiet);
  ASSERT_EQ(done.losses.size(), 60u);
  EXPECT_LT(done.losses.back(), 0.6 * done.losses.front());
  ASSERT_TRUE(done.dev);
  EXPECT_NEAR(done.dev->metric("log_perplexity"), done.losses.back(), 0.5);
  EXPECT_USER_ERROR(done.dev->metric("accuracy"), "the evaluation has no metric 'accuracy'",
                    "it has: tokens, log_perplexity, token_accuracy, sequences, sequence_accuracy");
  EXPECT_EQ(checkpoints_in(config.out()), (std::vector<std::string>{"step-00000040", "step-00000060"}));
  std::ifstream lines(config.out() + "/metrics.jsonl");
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(lines), {}, '\n'), 61);  // and the evaluation
}

// Dropout is on: variables, draws and data must all go on where they were.
TEST(Trainer, GoesOnBitForBit) {
  const SmallRun run("resume", "mesh.mesh=data:2,mesh.layout=batch:data");
  const Trained whole = train(run.with("", "whole"), kQuiet);
  const Trained begin = train(run.with("run.steps=5", "parts"), kQuiet);
  const Trained rest = train(run.with("", "parts"), kQuiet);
  EXPECT_EQ(rest.first, 5);
  EXPECT_EQ(rest.step, 12);
  std::vector<double> parts = begin.losses;
  parts.insert(parts.end(), rest.losses.begin(), rest.losses.end());
  EXPECT_EQ(parts, whole.losses);
  const Trained nothing = train(run.with("", "parts"), kQuiet);
  EXPECT_TRUE(nothing.losses.empty());
}

TEST(Trainer, NoStepsGiveTheFirstWeights) {
  const SmallRun run("first", "optimizer.schedule=constant 0.01 * cosine 100");
  const std::vector<double> whole = train(run.with("", "whole"), kQuiet).losses;
  EXPECT_TRUE(train(run.with("run.steps=0", "parts"), kQuiet).losses.empty());
  EXPECT_EQ(Checkpoint::open(run.folder + "/parts").state().step, 0);
  EXPECT_EQ(train(run.with("", "parts"), kQuiet).losses, whole);
}

TEST(Trainer, TheSameMeshGivesTheSameBits) {
  const SmallRun run("twice", "mesh.mesh=data:2 model:2,mesh.layout=batch:data heads,d_ff,vocab:model");
  EXPECT_EQ(train(run.with("", "a"), kQuiet).losses, train(run.with("", "b"), kQuiet).losses);
}

struct Placed {
  std::string mesh, layout;
};
const std::vector<Placed> kPlaced = {{"a:2", "batch:a"},
                                     {"a:4", "heads,d_ff,vocab:a"},
                                     {"a:2 b:2", "batch:a heads,d_ff,vocab:b"},
                                     {"a:2 b:2 c:2", "batch:a heads,d_ff:b vocab:c"}};

std::string on(const Placed& placed) { return "mesh.mesh=" + placed.mesh + ",mesh.layout=" + placed.layout; }

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) most = std::max(most, std::abs(a[i] - b[i]) / b[i]);
  return most;
}

// In f64 the layout changes nothing but the order of sums, however long the run.
void expect_equal_in_f64(const SmallRun& run, const std::string& steps) {
  const std::vector<double> one = train(run.with(steps + ",run.f64=true", "one"), kQuiet).losses;
  for (const Placed& placed : kPlaced) {
    SCOPED_TRACE(placed.mesh + " | " + placed.layout);
    const Trained many = train(run.with(steps + ",run.f64=true," + on(placed), "many"), kQuiet);
    EXPECT_LT(largest_difference(many.losses, one), 1e-8);
    fs::remove_all(run.folder + "/many");
  }
}
TEST(Trainer, MeshesAgreeInF64) { expect_equal_in_f64(SmallRun("f64"), "run.steps=6"); }
TEST(FullTrainer, MeshesAgreeInF64For200Steps) { expect_equal_in_f64(SmallRun("f64_200"), "run.steps=200"); }

TEST(FullTrainer, MeshesAgreeInF32) {
  const SmallRun run("f32", "run.steps=200,optimizer.schedule=constant 0.0001");
  const std::vector<double> one = train(run.with("", "one"), kQuiet).losses;
  const auto last = [](const std::vector<double>& losses) {
    return std::accumulate(losses.end() - 20, losses.end(), 0.0) / 20;
  };
  for (const Placed& placed : kPlaced) {
    SCOPED_TRACE(placed.mesh + " | " + placed.layout);
    const std::vector<double> many = train(run.with(on(placed), "many"), kQuiet).losses;
    EXPECT_LT(largest_difference({many.begin(), many.begin() + 20}, {one.begin(), one.begin() + 20}), 1e-4);
    EXPECT_NEAR(last(many) / last(one), 1, 0.005);
    fs::remove_all(run.folder + "/many");
  }
}

TEST(Trainer, ACheckpointGoesOnUnderAnotherMesh) {
  const SmallRun run("other", "run.steps=10,optimizer.schedule=constant 0.0001");
  const std::vector<double> whole = train(run.with("", "whole"), kQuiet).losses;
  train(run.with("run.steps=5," + on(kPlaced[2]), "begun"), kQuiet);
  const std::vector<Placed> others = {{"", ""}, {"a:4", "batch:a"}, {"a:8", "batch:a"}};
  for (const Placed& placed : others) {
    SCOPED_TRACE(placed.mesh);
    fs::copy(run.folder + "/begun", run.folder + "/on", fs::copy_options::recursive);
    const Trained rest = train(run.with(on(placed), "on"), kQuiet);
    EXPECT_EQ(rest.first, 5);
    EXPECT_LT(largest_difference(rest.losses, {whole.begin() + 5, whole.end()}), 1e-4);
    fs::remove_all(run.folder + "/on");
  }
}

TEST(Trainer, OtherDataIsRefused) {
  const SmallRun run("data");
  train(run.with("run.steps=2"), kQuiet);
  std::ofstream(run.text_path(), std::ios::app) << "more words\n";
  EXPECT_USER_ERROR(train(run.with(""), kQuiet), "belongs to other data", "begin a new run");
}

TEST(Trainer, WrongInputLeavesNothingBehind) {
  const SmallRun run("nothing");
  EXPECT_USER_ERROR(train(run.with("data.train=/nowhere.txt"), kQuiet), "/nowhere.txt");
  EXPECT_USER_ERROR(train(run.with("mesh.mesh=a:3,mesh.layout=batch:a"), kQuiet), "cannot be split evenly");
  EXPECT_FALSE(fs::exists(run.folder + "/out"));
}

TEST(Trainer, ARunInUseIsRefusedBeforeItIsRead) {
  const SmallRun run("in_use", "run.steps=2");
  train(run.config, kQuiet);
  const std::string out = run.config.out();
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(out)) found.insert(entry.path().filename());
    return found;
  };
  const std::set<std::string> before = names();
  const checkpoint::FolderLock other(out);  // locks of one process refuse each other, too
  // The other run replaces the checkpoint.
  fs::remove(Checkpoint::latest(out)->path() + "/shard-0.safetensors");
  EXPECT_USER_ERROR(train(run.with("run.steps=4"), kQuiet), "another program is writing checkpoints to '" + out + "'",
                    "checkpoint.folder-in-use");
  EXPECT_EQ(names(), before);
}

TEST(Trainer, OtherWeightsAreRefused) {
  const SmallRun run("weights");
  train(run.with("run.steps=2"), kQuiet);
  EXPECT_USER_ERROR(train(run.with("model.d_ff=64"), kQuiet), "d_ff");
}

TEST(Trainer, ALossThatIsNoNumberNamesItsMaker) {
  const SmallRun run("nan", "model.dropout=0,run.checkpoint_every=2,optimizer.name=sgd");
  const Config config = run.with("optimizer.schedule=constant 1e-3");
  Config wild = config;
  train(run.with("optimizer.schedule=constant 1e-3,run.steps=2"), kQuiet);
  wild.schedule = "constant 1e30";
  EXPECT_RUN_ERROR(train(wild, kQuiet), "the loss is", "at step", "has ", "transformer", "lower the learning rate",
                   "the last good checkpoint is");
  // What is left can be gone on from: none of it has values that are no numbers.
  const Trained done = train(config, kQuiet);
  EXPECT_EQ(done.step, 12);
  for (const double loss : done.losses) EXPECT_TRUE(std::isfinite(loss));
}

TEST(Trainer, AFolderThatCannotBeMadeIsAnError) {
  const SmallRun run("folder");
  std::ofstream(run.folder + "/file") << "x";
  EXPECT_RUN_ERROR(train(run.with("", "file/out"), kQuiet), "file/out", "Not a directory");
  EXPECT_RUN_ERROR(train(run.with("run.out=/proc/nothing/out"), kQuiet), "cannot make the folder '/proc/nothing/out'",
                   "run.out");
}

TEST(Trainer, ATraceIsOfTheLastStepsAndItsFileIsTriedFirst) {
  const SmallRun run("trace", "run.steps=3");
  EXPECT_RUN_ERROR(train(run.config, {.progress = false, .trace = "/nowhere/x.json"}), "cannot write the trace to");
  EXPECT_FALSE(fs::exists(run.config.out())) << "no step was made for nothing";
  train(run.config, {.progress = false, .trace = run.folder + "/trace.json"});
  EXPECT_GT(fs::file_size(run.folder + "/trace.json"), 1000u);
}

TEST(Trainer, MomentsToFailAtAreChecked) {
  const SmallRun run("fail");
  EXPECT_USER_ERROR(train_until("lunch:1", run.config, kQuiet), "'lunch:1' is no moment to fail at",
                    "write PHASE:N or PHASE:N@PROCESS; the phases are: step, save-begun, mid-shard, before-rename, "
                    "before-latest");
  EXPECT_USER_ERROR(train_until("step:0", run.config, kQuiet), "'step:0' is no moment");
}

TEST(Trainer, PairsForALanguageModelAlone) {
  const SmallRun run("features");
  Config config = run.with("model.kind=encoder_decoder,batch.inputs_length=16");
  EXPECT_USER_ERROR(train(config, kQuiet),
                    "the data has no feature 'inputs', which the model needs (the data has: targets)",
                    "give pairs, which have inputs and targets: set data.format to tsv or pairs");
}

// --- An encoder learns to guess masked tokens ---

// Lines of a letter and its next ones, over and over: what is hidden can be told from what is beside it.
void write_alphabets(const SmallRun& run) {
  std::ofstream text(run.text_path());
  for (int line = 0; line < 300; ++line) {
    for (int i = 0; i < 14; ++i) text << static_cast<char>('a' + (line * 7 + i) % 26);
    text << "\n";
  }
}

const char* const kEncoder = "model.kind=encoder,model.dropout=0,data.format=lines,model.positions=rotary";

TEST(TrainEncoder, LearnsToGuessMaskedTokens) {
  const SmallRun run("encoder", kEncoder);
  write_alphabets(run);
  Config config = run.with("run.steps=150,batch.sequences=16");
  config.data.dev = {run.text_path()};
  config.run.eval_batches = 4;
  const Trained done = train(config, kQuiet);
  EXPECT_GT(done.losses.front(), 4) << "the mean over the masked tokens of about log(259)";
  EXPECT_LT(done.losses.back(), 0.5 * done.losses.front());
  ASSERT_TRUE(done.dev);
  EXPECT_GT(done.dev->metric("token_accuracy"), 0.4);
  EXPECT_LT(done.dev->metric("tokens"), 0.25 * 4 * 16 * 16) << "only masked tokens count";
}

TEST(TrainEncoder, MeshesAgree) {
  const SmallRun run("encoder_meshes", std::string(kEncoder) + ",run.steps=4,run.f64=true");
  const std::vector<double> one = train(run.with("", "one"), kQuiet).losses;
  for (const Placed& placed : kPlaced) {
    SCOPED_TRACE(placed.mesh + " | " + placed.layout);
    EXPECT_LT(largest_difference(train(run.with(on(placed), "many"), kQuiet).losses, one), 1e-8);
    fs::remove_all(run.folder + "/many");
  }
}

TEST(TrainEncoder, GoesOnBitForBit) {
  const SmallRun run("encoder_resume", kEncoder);
  const Trained whole = train(run.with("", "whole"), kQuiet);
  std::vector<double> parts = train(run.with("run.steps=5", "parts"), kQuiet).losses;
  const Trained rest = train(run.with("", "parts"), kQuiet);
  parts.insert(parts.end(), rest.losses.begin(), rest.losses.end());
  EXPECT_EQ(parts, whole.losses);
}

TEST(TrainEncoder, NeedsAShareOfMaskedTokens) {
  const SmallRun run("encoder_share", kEncoder);
  EXPECT_USER_ERROR(train(run.with("data.mask=0.0"), kQuiet),
                    "an encoder learns to guess masked tokens, but data.mask is 0", "data.mask",
                    "set data.mask to a number above 0 and below 1, such as 0.15");
}

// --- A prefix model answers whole inputs ---

TEST(TrainPrefix, AnswersPromptsOfUnlikeLengthsAsEachAlone) {
  const SmallRun run("prefix",
                     "model.prefix=true,model.dropout=0,model.loss_on_targets_only=true,model.positions=rotary,"
                     "data.format=tsv,batch.length=24,run.steps=300,batch.sequences=16,decode.max_length=20");
  std::ofstream pairs(run.text_path());
  const auto repeated = [](char letter, int count) { return std::string(static_cast<std::size_t>(count), letter); };
  for (int i = 0; i < 400; ++i)  // the answer is the letter that the input repeats
    pairs << repeated(static_cast<char>('a' + i % 4), 1 + i % 7) << "\t" << static_cast<char>('A' + i % 4) << "\n";
  pairs.close();
  train(run.with("", "out"), kQuiet);
  const std::vector<std::string> prompts = {"aaaaa", "b", "ccc", "dd", "aa", "bbbbbbb"};
  TrainedModel model(run.folder + "/out");
  const auto together = model.generate(prompts);
  ASSERT_EQ(together.size(), prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    SCOPED_TRACE(prompts[i]);
    EXPECT_EQ(together[i][0].text, std::string(1, static_cast<char>(prompts[i][0] - 'a' + 'A')));
    EXPECT_TRUE(together[i][0].ended);
    TrainedModel alone(run.folder + "/out");
    EXPECT_EQ(alone.generate({prompts[i]})[0][0].ids, together[i][0].ids);
  }
}

// --- What is hardly meant ---

std::string said_by(const Config& config) {
  ::testing::internal::CaptureStdout();
  train(config);
  return ::testing::internal::GetCapturedStdout();
}

TEST(Trainer, WarnsIfMoreStepsRescaleTheSchedule) {
  const SmallRun run("rescaled", "run.steps=4,optimizer.schedule=constant 0.01 * cosine");
  EXPECT_THAT(said_by(run.config), ::testing::Not(::testing::HasSubstr("warning")));
  EXPECT_THAT(said_by(run.with("run.steps=8")),
              ::testing::HasSubstr("warning: run.steps was 4 and is 8, which rescales the schedule \"constant 0.01 * "
                                   "cosine\": the learning rate of step 5 is 0.00308658 and would have been 0; write "
                                   "the numbers of steps into optimizer.schedule to keep it"));
}

TEST(Trainer, DoesNotWarnIfTheScheduleNamesItsSteps) {
  const SmallRun run("not_rescaled", "run.steps=4,optimizer.schedule=constant 0.01 * cosine 4");
  train(run.config, kQuiet);
  EXPECT_THAT(said_by(run.with("run.steps=6")), ::testing::Not(::testing::HasSubstr("warning")));
}

TEST(Trainer, SaysThatCheckpointsRoundTheWeights) {
  const SmallRun run("rounds", "run.steps=2");
  const std::string note =
      "note: checkpoints hold weights as bf16, which the optimizer updates as f32, so a run that goes on from one "
      "begins "
      "with rounded weights";
  EXPECT_THAT(said_by(run.with("model.stored=bf16,model.slice=f32", "rounded")), ::testing::HasSubstr(note));
  EXPECT_THAT(said_by(run.with("", "same")), ::testing::Not(::testing::HasSubstr("note:")));
  const auto dtype = [&](const std::string& sub) {
    return Checkpoint::open(run.folder + "/" + sub).variables().at("embedding").dtype;
  };
  EXPECT_EQ(dtype("rounded"), DType::kBF16);
  EXPECT_EQ(dtype("same"), DType::kF32);
}

TEST(Trainer, GoesOnBitForBitWithNarrowWeights) {
  const SmallRun run("narrow", "model.stored=bf16,model.activations=bf16");
  const std::vector<double> whole = train(run.with("", "whole"), kQuiet).losses;
  std::vector<double> parts = train(run.with("run.steps=5", "parts"), kQuiet).losses;
  const std::vector<double> rest = train(run.with("", "parts"), kQuiet).losses;
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(parts, whole);
}

TEST(Trainer, ChecksIdsIfAsked) {
  const SmallRun run("ids", "model.positions=learned,run.check_ids=true,run.steps=2");
  EXPECT_NO_THROW(train(run.config, kQuiet));
}

}  // namespace
}  // namespace weft::train::trainer_test
