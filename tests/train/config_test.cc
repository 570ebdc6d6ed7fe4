#include "weft/config.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/expect_error.h"
#include "train/parts.h"
#include "train/tasks/transformer.h"
#include "weft/train.h"

namespace weft::train::config_test {
namespace {

using ::testing::HasSubstr;

std::string source_path(const std::string& path) { return std::string(WEFT_TEST_DATA) + "/../" + path; }

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

const models::TransformerOptions& transformer(const Config& config) {
  return dynamic_cast<const TransformerTask&>(config.model.task()).options;
}

TEST(Config, ReadsFormerNamesOfSettings) {
  EXPECT_EQ(parse_config("[mesh]\nruntime = \"reference\"\n").mesh.device, "reference");
  EXPECT_USER_ERROR(parse_config("[mesh]\nruntime = \"cpu\"\ndevice = \"cpu\"\n"),
                    "there is no setting 'mesh.runtime'");
}

TEST(Config, ReadsEverySectionAndKeepsDefaults) {
  const Config c = parse_config(R"(
name = "mine"
[model]
kind = "encoder_decoder"
layers = 3
norm = "layer"
activation = ["gelu", "linear"]
extra_logit = 0
activations = "bf16"
[data]
train = "a.tsv"
[optimizer]
name = "adafactor"
rules = ["embedding: rate 0.5, decay 0", "^decoder/: frozen"]
[mesh]
layout = "batch:data heads,d_ff:model"
)");
  EXPECT_EQ(c.name, "mine");
  const models::TransformerOptions& model = transformer(c);
  EXPECT_EQ(c.model->kind(), "encoder_decoder");
  EXPECT_EQ(model.kind, models::Kind::kEncoderDecoder);
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.norm, models::Norm::kLayer);
  EXPECT_EQ(model.activation, (std::vector<std::string>{"gelu", "linear"}));
  EXPECT_EQ(model.extra_logit, 0.0);
  EXPECT_EQ(model.activations, DType::kBF16);
  EXPECT_EQ(model.heads, models::TransformerOptions{}.heads);
  EXPECT_EQ(c.data.train, std::vector<std::string>{"a.tsv"});
  ASSERT_EQ(c.optimizer.rules.size(), 2u);
  EXPECT_EQ(c.optimizer.rules[0].pattern, "embedding");
  EXPECT_EQ(c.optimizer.rules[0].rate_scale, 0.5);
  EXPECT_EQ(c.optimizer.rules[0].weight_decay, 0.0);
  EXPECT_FALSE(c.optimizer.rules[1].train);
  EXPECT_EQ(c.mesh.layout, "batch:data heads,d_ff:model");
  EXPECT_EQ(c.out(), "runs/mine");
}

TEST(Config, TextParsesBackToTheSame) {
  Config c = parse_config("name = \"a \\\"b\\\" \\\\ c\"\n[model]\nextra_logit = 0.25\n[run]\nsteps = 17\n");
  set(c, "optimizer.rules=[\"bias: rate 0.1, decay 0.01\"],data.train=[\"x\", \"y\"]");
  set(c, "optimizer.epsilon=1e-30,model.dropout=0.1");
  const std::string once = text(c);
  EXPECT_EQ(text(parse_config(once)), once);
  EXPECT_EQ(transformer(parse_config(once)).extra_logit, 0.25);
  EXPECT_EQ(parse_config(once).optimizer.epsilon, 1e-30);
  EXPECT_EQ(parse_config(once).name, c.name);
}

TEST(Config, SetTakesManyAndWordsWithoutQuotes) {
  Config c;
  set(c, "run.steps=7,model.kind=encoder,mesh.layout=batch:data heads,d_ff:model,mesh.mesh=data:2 model:2");
  EXPECT_EQ(c.run.steps, 7);
  EXPECT_EQ(transformer(c).kind, models::Kind::kEncoder);
  EXPECT_EQ(c.mesh.layout, "batch:data heads,d_ff:model");
  EXPECT_EQ(c.mesh.mesh, "data:2 model:2");
  set(c, "data.train=[\"a,b\", \"c\"]");
  EXPECT_EQ(c.data.train, (std::vector<std::string>{"a,b", "c"}));
}

TEST(Config, SequencesComeFromTokens) {
  Config c;
  set(c, "batch.tokens=512,batch.length=64,batch.sequences=0");
  EXPECT_EQ(c.sequences(), 8);
}

TEST(Config, RefusesWhatItDoesNotKnow) {
  EXPECT_USER_ERROR(parse_config("[model]\n\nlayer = 3\n", "lm.toml"), "there is no setting 'model.layer'", "lm.toml:3",
                    "did you mean 'model.layers'?");
  EXPECT_USER_ERROR(parse_config("[nothing]\nat_all = 3\n", "lm.toml"), "there is no setting 'nothing.at_all'",
                    "see docs/config.md for the settings");
  EXPECT_USER_ERROR(parse_config("[model]\nlayers = \"three\"\n", "lm.toml"),
                    "setting 'model.layers' is a whole number from 0 on, but it was given ", "three", "lm.toml:2",
                    "see docs/config.md, or weft train --print-config for a complete one");
  EXPECT_USER_ERROR(parse_config("[model]\nlayers = -1\n"), "a whole number from 0 on");
  EXPECT_USER_ERROR(parse_config("[model]\ntied = 1\n"), "setting 'model.tied' is true or false");
  EXPECT_USER_ERROR(parse_config("[model]\ndropout = \"a\"\n"), "setting 'model.dropout' is a number");
  EXPECT_USER_ERROR(parse_config("name = 3\n"), "setting 'name' is a text in quotes");
  EXPECT_USER_ERROR(parse_config("[data]\ntrain = [1]\n"), "setting 'data.train' is a list of texts");
  EXPECT_USER_ERROR(parse_config("[model]\nnorm = \"layr\"\n", "x"), "setting 'model.norm' cannot be 'layr'",
                    "did you mean 'layer'?", "rms, layer, scale");
  EXPECT_USER_ERROR(parse_config("[model\nx = 1\n", "x.toml"), "the config is no TOML: ", "x.toml:1",
                    "write settings as `key = value`, texts in quotes; see docs/config.md");
  const std::string empty = ::testing::TempDir() + "empty_config.toml";
  std::ofstream(empty).close();
  EXPECT_EQ(read_config(empty).run.steps, Config().run.steps);  // all defaults
  EXPECT_USER_ERROR(read_config(::testing::TempDir()), "cannot read the config");
  EXPECT_USER_ERROR(read_config("/nowhere/x.toml"), "cannot read the config '/nowhere/x.toml'",
                    "give the path of a .toml file, such as configs/lm-demo.toml");
  Config c;
  EXPECT_USER_ERROR(set(c, "run.step=3"), "there is no setting 'run.step'", "--set run.step=3", "run.steps");
  EXPECT_USER_ERROR(set(c, "d_kv=3"), "there is no setting 'd_kv'", "did you mean 'model.d_kv'?");
  EXPECT_USER_ERROR(set(c, "steps"), "'steps' sets nothing", "write key=value, as in --set run.steps=100");
}

TEST(Config, RefusesRulesThatSayNothing) {
  EXPECT_USER_ERROR(parse_config("[optimizer]\nrules = [\"frozen\"]\n", "x.toml"),
                    "the optimizer's rule \"frozen\" names no pattern", "x.toml:2",
                    "write \"PATTERN: rate 0.1, decay 0\" or \"PATTERN: frozen\", the pattern a regular "
                    "expression that is searched in the variables' names");
  EXPECT_USER_ERROR(parse_config("[optimizer]\nrules = [\"a: rate\"]\n"), "has no number behind 'rate'");
  EXPECT_USER_ERROR(parse_config("[optimizer]\nrules = [\"a: speed 3\"]\n"),
                    "says 'speed', which is no word of a rule");
}

TEST(Config, CheckRefusesWhatCannotRun) {
  const auto with = [](const std::string& assignments) {
    Config c;
    set(c, "data.train=x.txt,batch.sequences=8");
    set(c, assignments);
    return c;
  };
  EXPECT_USER_ERROR(check(with("batch.tokens=128")), "batch.sequences is 8 and batch.tokens is 128",
                    "set one of them to 0: tokens = sequences * length");
  EXPECT_USER_ERROR(check(with("batch.length=0")), "rows of a batch cannot have 0 targets", "set batch.length");
  for (const char* deadline : {"0", "-5", "nan"})
    EXPECT_USER_ERROR(check(with(std::string("run.deadline=") + deadline)), "processors cannot wait ",
                      " s for each other", "set run.deadline to seconds above 0, as 600", "config.bad-deadline");
  EXPECT_USER_ERROR(check(with("batch.sequences=0,batch.tokens=100,batch.length=64")),
                    "100 tokens make no whole rows of length 64", "set batch.tokens to a multiple of batch.length");
  EXPECT_USER_ERROR(check(with("batch.microbatches=3")), "8 rows cannot be divided into 3 microbatches",
                    "set batch.microbatches to a divisor of the rows");
  EXPECT_USER_ERROR(check(with("data.train=[]")), "there is nothing to train on",
                    "set data.train to the files: data.train = [\"corpus/train.txt\"]");
  EXPECT_USER_ERROR(check(with("data.format=pairs")), "pairs are two files, but data.train has 1",
                    "give the file of the inputs, then that of the targets");
  EXPECT_USER_ERROR(check(with("mesh.memory=lots")), "'lots' is no number of bytes", "write sizes like 512MiB or 2GiB");
  EXPECT_USER_ERROR(check(with("mesh.mesh=data")), "data");
  EXPECT_USER_ERROR(check(with("optimizer.schedule=fast")), "fast");
}

TEST(Config, TheRateMultipliesTheSchedule) {
  const auto at = [](const std::string& assignments, std::int64_t step) {
    Config c;
    set(c, "run.steps=100,data.train=x.txt");
    if (!assignments.empty()) set(c, assignments);
    EXPECT_NO_THROW(check(c)) << assignments;
    return schedule_of(c).at(step);
  };
  EXPECT_DOUBLE_EQ(at("", 7), 0.001);
  EXPECT_DOUBLE_EQ(at("optimizer.rate=3e-4", 7), 3e-4);
  EXPECT_DOUBLE_EQ(at("optimizer.rate=1e-3,optimizer.schedule=linear_warmup 100", 50), 5e-4);
  EXPECT_DOUBLE_EQ(at("optimizer.schedule=constant 0.25", 7), 0.25);
  Config c;
  set(c, "data.train=x.txt,optimizer.rate=0");
  EXPECT_USER_ERROR(check(c), "a learning rate cannot be 0", "where: --set optimizer.rate=0",
                    "give a finite number above 0, as 1e-3");
  set(c, "optimizer.rate=inf");
  EXPECT_USER_ERROR(check(c), "a learning rate cannot be inf");
  EXPECT_USER_ERROR(set(c, "optimizer.rat=1"), "there is no setting 'optimizer.rat'", "did you mean 'optimizer.rate'?");
}

// Every config that ships is one that can be planned; the paper's have the paper's sizes.
TEST(Config, ThoseThatShipAreWhole) {
  const std::map<std::string, double> paper = {
      {"lm-0.14b", 0.14}, {"lm-0.22b", 0.22}, {"lm-0.37b", 0.37}, {"lm-0.67b", 0.67}, {"lm-1.28b", 1.28},
      {"lm-2.48b", 2.48}, {"lm-4.9b", 4.90},  {"mt-0.16b", 0.16}, {"mt-0.24b", 0.24}, {"mt-0.42b", 0.42},
      {"mt-0.77b", 0.77}, {"mt-1.48b", 1.48}, {"mt-2.89b", 2.89}};
  int seen = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("configs"))) {
    if (entry.path().extension() != ".toml") continue;
    const std::string name = entry.path().stem();
    SCOPED_TRACE(name);
    if (entry.path().parent_path().filename() == "layouts") continue;
    const Config c = read_config(entry.path());
    EXPECT_EQ(c.name, name);
    if (!paper.contains(name)) continue;
    ++seen;
    EXPECT_NO_THROW(check(c));
    EXPECT_NEAR(static_cast<double>(models::weights(transformer(c))) / 1e9, paper.at(name), 0.0051);
    EXPECT_EQ(c.mesh.mesh.find("batch:"), 0u);
  }
  EXPECT_EQ(seen, 13);
}

// Mesh-TensorFlow's layouts, over a config whose sizes they divide.
TEST(Config, LayoutsHoldOverAConfig) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("configs/layouts"))) {
    SCOPED_TRACE(entry.path());
    Config c = read_config(source_path("configs/paper/lm-4.9b.toml"));
    read_more(c, entry.path());
    set(c, "model.heads=128,model.d_ff=512,model.layers=1,model.d_kv=4,model.d_model=8");
    EXPECT_NO_THROW(plan(c));
    ++seen;
  }
  EXPECT_EQ(seen, 11);
}

TEST(Config, TheLargestIsPlannedForItsMesh) {
  const Explanation e = plan(read_config(source_path("configs/paper/lm-4.9b.toml")));
  EXPECT_EQ(e.mesh.size(), 512);
  EXPECT_NEAR(static_cast<double>(e.parameters) / 1e9, 4.90, 0.005);
  EXPECT_LT(e.parameters_per_processor, e.parameters / 30);
  EXPECT_FALSE(e.collectives.empty());
}

TEST(Config, TheReferenceHasTheRealDefaults) {
  const std::string text = reference();
  EXPECT_EQ(text.find("| none |"), std::string::npos);
  EXPECT_THAT(text, HasSubstr("| `beta2` | `0.999` | of adam and adamw |"));
  EXPECT_THAT(text, HasSubstr("| `beta1` | `0.9`; of adafactor `0.0` |"));
  EXPECT_THAT(text, HasSubstr("| `weight_decay` | `0.0`; of adamw `0.01` |"));
  EXPECT_THAT(text, HasSubstr("| `rate` | `1.0`; without a schedule `0.001` |"));
}

// docs/config.md is this text; WEFT_WRITE_DOCS=1 writes it.
TEST(Config, TheReferenceIsUpToDate) {
  const std::string path = source_path("docs/config.md");
  if (std::getenv("WEFT_WRITE_DOCS")) std::ofstream(path) << reference();
  EXPECT_EQ(file_text(path), reference()) << "run weft_test_train --gtest_filter=Config* with WEFT_WRITE_DOCS=1";
}

}  // namespace
}  // namespace weft::train::config_test
