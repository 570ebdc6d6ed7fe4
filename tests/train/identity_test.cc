// Weights keep the meaning that they were trained with: a changed model of equal shapes is refused, and a new run that
// begins with the weights of another one says so.
#include <gmock/gmock.h>

#include "small_run.h"
#include "support/expect_error.h"
#include "train/settings.h"

namespace weft::train::identity_test {
namespace {

using ::testing::ElementsAre;

bool same(const Array& a, const Array& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() &&
         std::equal(a.bytes(), a.bytes() + static_cast<std::size_t>(a.elements()) * size_of(a.dtype()), b.bytes());
}

TEST(Identity, KeysAreSettings) {
  std::vector<std::string> all;
  Config config;
  each_setting(config, [&](const std::string& key, auto&, const char*) { all.push_back(key); });
  for (const std::string& key : identity_keys(config)) EXPECT_THAT(all, ::testing::Contains(key));
  for (const char* key : {"model.kind", "model.positions", "model.activation", "model.norm", "model.prefix",
                          "model.tied", "data.vocabulary", "optimizer.name"})
    EXPECT_THAT(identity_keys(config), ::testing::Contains(key));
}

struct Changed {
  const char *key, *there, *here;
};
// All of them leave the shapes of the weights as they are.
const Changed kChanged[] = {{"model.positions", "\"rotary\"", "\"sinusoid\""},
                            {"model.activation", "[\"relu\"]", "[\"gelu\"]"},
                            {"model.norm_epsilon", "1e-06", "0.01"},
                            {"model.rotary_base", "10000.0", "100.0"},
                            {"model.extra_logit", "not set", "0.5"},
                            {"model.fold_scaling", "false", "true"},
                            {"model.prefix", "false", "true"},
                            {"optimizer.name", "\"adam\"", "\"sgd\""}};

TEST(Identity, AChangedModelOfEqualShapesIsRefused) {
  const SmallRun run("identity", "model.positions=rotary,model.norm=layer,model.dropout=0");
  train(run.with("run.steps=2"), kQuiet);
  const std::string from = run.folder + "/out/step-00000002";
  const auto changed = [&](const Changed& c) { return std::string(c.key) + "=" + c.here; };
  for (const Changed& c : kChanged) {
    SCOPED_TRACE(c.key);
    const std::string what = "the weights of '" + from + "' were trained under other settings: " + c.key + " is " +
                             c.there + " there and " + c.here + " here";
    const std::string fix = std::string(
                                "give the settings the values of the run, or, if the change is meant, add "
                                "--allow-change ") +
                            c.key;
    EXPECT_USER_ERROR(train(run.with(changed(c)), kQuiet), what, fix);
    EXPECT_USER_ERROR(TrainedModel(run.folder + "/out", {changed(c)}), what, fix);
    EXPECT_NO_THROW(TrainedModel(run.folder + "/out", {changed(c)}, {c.key}));
    std::filesystem::copy(run.folder + "/out", run.folder + "/copy", std::filesystem::copy_options::recursive);
    const Trained done =
        train(run.with(changed(c) + ",run.steps=3", "copy"), {.progress = false, .allow_change = {c.key}});
    EXPECT_EQ(done.first, 2);
    EXPECT_EQ(done.step, 3);
    std::filesystem::remove_all(run.folder + "/copy");
  }
  EXPECT_USER_ERROR(train(run.with("model.norm=rms,model.kind=encoder,model.activation=gelu"),
                          {.progress = false, .allow_change = {"model.activation"}}),
                    "model.kind is \"lm\" there and \"encoder\" here; model.norm is \"layer\" there and \"rms\" here",
                    "add --allow-change model.kind --allow-change model.norm");
  EXPECT_NO_THROW(train(run.with("model.dropout=0.1,run.steps=3"), kQuiet)) << "what does not change their meaning";
}

TEST(Identity, OnlyIdentitySettingsCanBeAllowedToChange) {
  const SmallRun run("allowed");
  train(run.with("run.steps=1"), kQuiet);
  EXPECT_USER_ERROR(train(run.with("model.layers=3"), {.progress = false, .allow_change = {"model.layers"}}),
                    "'model.layers' is no setting that --allow-change is for", "--allow-change model.layers",
                    "it is for the identity settings: model.kind, ");
  EXPECT_USER_ERROR(TrainedModel(run.folder + "/out", {}, {"model.position"}), "did you mean 'model.positions'?");
}

TEST(Identity, AnotherModelNamesItsSettings) {
  const SmallRun run("sizes", "model.dropout=0");
  train(run.with("run.steps=1"), kQuiet);
  const std::string from = run.folder + "/out/step-00000001";
  EXPECT_USER_ERROR(
      train(run.with("model.layers=3,model.dropout=0.5"), kQuiet),
      "the model is another than that of '" + from +
          "': model.layers is 2 there and 3 here; 6 variables are here alone",
      "(layer_2/",
      "go on with the settings of the run, or begin a new run with its weights: --out FOLDER --init-from " + from +
          " --allow-missing");
  EXPECT_USER_ERROR(train(run.with("model.layers=1,model.heads=2"), kQuiet),
                    "model.heads is 4 there and 2 here; model.layers is 2 there and 1 here",
                    "variables are there alone",
                    "variables have other shapes (layer_0/attention/o/kernel [heads=4 d_kv=4 d_model=16] there and "
                    "[heads=2 d_kv=4 d_model=16] here",
                    "--allow-unused");
  EXPECT_USER_ERROR(TrainedModel(run.folder + "/out", {"model.layers=3"}), "model.layers is 2 there and 3 here",
                    "leave the settings of [model] as they were in training");
}

TEST(Identity, TheSameModelIsUsedHoweverItsBatchesAreDivided) {
  const SmallRun run("chunks", "model.loss_chunks=4,batch.microbatches=2,run.steps=1");
  train(run.with(""), kQuiet);
  EXPECT_EQ(train(run.with("run.steps=2"), kQuiet).first, 1);
  EXPECT_EQ(TrainedModel(run.folder + "/out", {"decode.max_length=8"}).generate({"the"}).size(), 1u);
}

// Another optimizer has no use for the state of the one before.
TEST(Identity, AnAllowedOptimizerBeginsItsStateAnew) {
  const SmallRun run("optimizer", "run.steps=2");
  train(run.with(""), kQuiet);
  const Trained done =
      train(run.with("optimizer.name=momentum,run.steps=4"), {.progress = false, .allow_change = {"optimizer.name"}});
  EXPECT_EQ(done.first, 2);
  EXPECT_EQ(Checkpoint::open(run.folder + "/out").variables().count("embedding.m"), 0u);
}

class WarmStarts : public ::testing::Test {
 protected:
  WarmStarts() : run_("warm", "run.steps=3,model.dropout=0") { train(run_.with("", "old"), kQuiet); }

  TrainOptions init(const WarmStart& more = {}) const {
    WarmStart start = more;
    start.from = run_.folder + "/old";
    return {.progress = false, .init = start};
  }
  // The weights that a new run begins with.
  Checkpoint begun(const std::string& settings, const TrainOptions& options, const std::string& sub = "new") const {
    std::filesystem::remove_all(run_.folder + "/" + sub);
    train(run_.with("run.steps=0" + (settings.empty() ? "" : "," + settings), sub), options);
    return Checkpoint::open(run_.folder + "/" + sub);
  }

  SmallRun run_;
};

TEST_F(WarmStarts, TakeTheWeightsAlone) {
  const Checkpoint old = Checkpoint::open(run_.folder + "/old");
  const Checkpoint start = begun("optimizer.name=momentum", init());
  EXPECT_EQ(start.state().step, 0);
  for (const auto& [name, variable] : start.variables()) {
    SCOPED_TRACE(name);
    if (variable.slot_of.empty()) EXPECT_TRUE(same(start.read(name), old.read(name)));
    else EXPECT_EQ(start.read(name).at(0), 0);
  }
  // The first step is made with these weights, at step 1, on the first batch.
  const Trained old_first = train(run_.with("run.steps=1", "cold"), kQuiet);
  const Trained first = train(run_.with("run.steps=1", "warm"), init());
  EXPECT_EQ(first.first, 0);
  EXPECT_LT(first.losses[0], old_first.losses[0]);
}

TEST_F(WarmStarts, AreMadeOnce) {
  train(run_.with("run.steps=2", "parts"), init());
  const Trained rest = train(run_.with("", "parts"), init());
  EXPECT_EQ(rest.first, 2);
  const Trained whole = train(run_.with("", "whole"), init());
  EXPECT_THAT(rest.losses, ElementsAre(whole.losses[2]));
}

TEST_F(WarmStarts, OfOtherModelsSayWhatIsMissing) {
  const Checkpoint old = Checkpoint::open(run_.folder + "/old");
  const std::string path = run_.folder + "/old/step-00000003";
  EXPECT_USER_ERROR(begun("model.layers=3", init()), "the checkpoint lacks variables that the session has: layer_2/",
                    path, "--allow-missing");
  EXPECT_TRUE(same(begun("model.layers=3", init({.allow_missing = true})).read("layer_1/attention/o/kernel"),
                   old.read("layer_1/attention/o/kernel")));
  EXPECT_USER_ERROR(begun("model.layers=1", init()), "the checkpoint has weights that the session lacks: layer_1/",
                    "--allow-unused");
  EXPECT_NO_THROW(begun("model.layers=1", init({.allow_unused = true})));
  const Checkpoint renamed = begun("model.layers=3", init({.rename = {{"layer_0/", "layer_2/"}}}));
  EXPECT_TRUE(same(renamed.read("layer_2/attention/o/kernel"), old.read("layer_0/attention/o/kernel")));
  EXPECT_USER_ERROR(begun("model.d_ff=64", init()), "is f32 [", "d_ff=64] in the session, but f32 [");
  EXPECT_USER_ERROR(begun("model.activation=gelu", init()), "model.activation is [\"relu\"] there and [\"gelu\"] here",
                    "--allow-change model.activation");
  TrainOptions allowed = init();
  allowed.allow_change = {"model.activation"};
  EXPECT_NO_THROW(begun("model.activation=gelu", allowed));
}

}  // namespace
}  // namespace weft::train::identity_test
