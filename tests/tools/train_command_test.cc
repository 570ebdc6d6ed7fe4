// weft train, eval, generate and translate as a user meets them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/command.h"

namespace weft::train_command_test {
namespace {

using test::ran;
using test::Ran;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Json = nlohmann::json;

const char* const kModel =
    "d_model = 16\nheads = 2\nd_kv = 8\nd_ff = 32\nlayers = 1\nvocab_divisor = 4\npositions = \"rotary\"\n";
const char* const kRun =
    "[optimizer]\nname = \"adam\"\nschedule = \"constant 0.01\"\n[run]\nsteps = 8\nlog_every = 4\n[batch]\nsequences = "
    "4\n"
    "length = 16\ninputs_length = 16\n[decode]\nmax_length = 12\n";

// A folder with a language model ("lm") and a translator ("mt") to train.
class TrainCommand : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = ::testing::TempDir() + "/weft_train_command_" + std::to_string(getpid());
    std::filesystem::create_directories(folder_);
    std::string text, pairs;
    for (int i = 0; i < 60; ++i) {
      text += "one two three " + std::to_string(i % 7) + "\n";
      pairs += "in " + std::to_string(i) + "\tout " + std::to_string(i % 5) + "\n";
    }
    write("words.txt", text);
    write("pairs.tsv", pairs);
    write("lm.toml", "name = \"lm\"\n[model]\n" + std::string(kModel) + "[data]\nformat = \"text\"\ntrain = \"" +
                         folder_ + "/words.txt\"\ndev = \"" + folder_ + "/words.txt\"\n" + kRun);
    write("mt.toml", "name = \"mt\"\n[model]\nkind = \"encoder_decoder\"\n" + std::string(kModel) +
                         "[data]\ntrain = \"" + folder_ + "/pairs.tsv\"\ndev = \"" + folder_ + "/pairs.tsv\"\n" + kRun);
    for (const std::string kind : {"lm", "mt"}) {
      const Ran trained = weft("train " + folder_ + "/" + kind + ".toml --out " + folder_ + "/" + kind);
      EXPECT_EQ(trained.code, 0) << trained.output;
      EXPECT_THAT(trained.output, AllOf(HasSubstr("step 8 of 8  loss "), HasSubstr(" tokens/s"), HasSubstr("% of peak"),
                                        HasSubstr("dev at step 8  log-perplexity"), HasSubstr("done at step 8")));
    }
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  static Ran weft(const std::string& line) { return ran(std::string(WEFT_COMMAND) + " " + line + " 2>&1"); }
  static std::string output(const std::string& line) {
    const Ran done = ran(std::string(WEFT_COMMAND) + " " + line);
    EXPECT_EQ(done.code, 0) << line;
    return done.output;
  }

  static std::string folder_;
};
std::string TrainCommand::folder_;

TEST_F(TrainCommand, PrintsItsConfigWhole) {
  const std::string text = output("train " + folder_ + "/lm.toml --print-config --set model.layers=3 --steps 7");
  EXPECT_THAT(text, AllOf(HasSubstr("layers = 3"), HasSubstr("steps = 7"), HasSubstr("[decode]"), HasSubstr("beta1")));
  write("again.toml", text);
  EXPECT_EQ(output("train " + folder_ + "/again.toml --print-config"), text);
}

TEST_F(TrainCommand, WritesAReportOfTheRun) {
  const std::string page = folder_ + "/page.html";
  const Ran trained =
      weft("train " + folder_ + "/lm.toml --quiet --out " + folder_ + "/reported --steps 2 --report " + page);
  EXPECT_EQ(trained.code, 0) << trained.output;
  const Ran parsed = ran(std::string(WEFT_TEST_DATA) + "/report/well_formed.py " + page + " 'measured step' 2>&1");
  EXPECT_EQ(parsed.code, 0) << parsed.output;
  EXPECT_THAT(parsed.output, AllOf(HasSubstr("timeline 2 1\n"), HasSubstr("memory 2 0\n")));
}

TEST_F(TrainCommand, DryRunsForMeshesThatAreNotHere) {
  const std::string line = "train " + folder_ + "/lm.toml --dry-run --mesh data:4 --layout batch:data";
  EXPECT_THAT(output(line), AllOf(HasSubstr("lm: 10.4 k parameters ("), HasSubstr("4 processors"),
                                  HasSubstr("all_reduce"), HasSubstr("arena")));
  const Json json = Json::parse(output(line + " --json"));
  EXPECT_EQ(json["parameters"]["total"].get<int>(), 10416);
  EXPECT_EQ(json["parameters"]["per_processor"].get<int>(), 10416);
  write("mesh.toml", "[mesh]\nmesh = \"data:2\"\nlayout = \"batch:data\"\n");
  EXPECT_THAT(output("train " + folder_ + "/lm.toml " + folder_ + "/mesh.toml --dry-run"), HasSubstr("2 processors"));
  EXPECT_FALSE(std::filesystem::exists("runs"));
}

// Refused by name, and before a graph is built of it.
TEST_F(TrainCommand, SizesBeyondAnyMachineAreRefusedAtOnce) {
  const auto refused = [&](const std::string& setting) {
    const Ran done = weft("train " + folder_ + "/lm.toml --dry-run --set " + setting);
    EXPECT_EQ(done.code, 2) << done.output;
    return done.output;
  };
  EXPECT_THAT(refused("model.heads=4611686018427387904"),
              AllOf(HasSubstr("heads cannot be 4611686018427387904"), HasSubstr("give at most 2147483648")));
  EXPECT_THAT(refused("model.layers=1000000000"),
              AllOf(HasSubstr("layers cannot be 1000000000"), HasSubstr("give at most 10000")));
  EXPECT_THAT(refused("model.d_ff=2000000000 --set model.d_model=2000000000"), HasSubstr("weights"));
  EXPECT_THAT(refused("batch.length=4611686018427387904"), HasSubstr("4611686018427387904"));
  EXPECT_THAT(refused("batch.sequences=1000000000000"), HasSubstr("1000000000000"));
}

TEST_F(TrainCommand, EvalGivesPerplexityAndScoresPerLine) {
  const Json report = Json::parse(output("eval " + folder_ + "/mt --json --bleu --per-line " + folder_ +
                                         "/scores --translations " + folder_ + "/fr.txt"));
  EXPECT_EQ(report["step"], 8);
  EXPECT_EQ(report["sentences"], 60);
  EXPECT_GT(report["log_perplexity"], 0.0);
  EXPECT_GE(report["bleu"], 0.0);
  EXPECT_THAT(report["signature"], HasSubstr("tok:13a"));
  std::ifstream scores(folder_ + "/scores"), french(folder_ + "/fr.txt");
  double sum = 0;
  int lines = 0;
  for (std::string line; std::getline(scores, line); ++lines) sum -= std::stod(line);
  EXPECT_EQ(lines, 60);
  EXPECT_NEAR(sum / report["tokens"].get<double>(), report["log_perplexity"].get<double>(), 1e-6);
  EXPECT_EQ(std::count(std::istreambuf_iterator<char>(french), {}, '\n'), 60);
  // Packed rows and single ones say the same.
  EXPECT_NEAR(Json::parse(output("eval " + folder_ + "/mt --json"))["log_perplexity"], report["log_perplexity"], 1e-5);
}

// Examples are counted, not the rows that they are packed into.
TEST_F(TrainCommand, AccuracyIsOfExamples) {
  std::string pairs;
  for (int i = 0; i < 64; ++i) pairs += "in " + std::to_string(i) + "\t" + (i % 4 == 0 ? "no" : "ok") + "\n";
  write("answers.tsv", pairs);
  const std::string file = folder_ + "/answers.tsv", run = folder_ + "/answers";
  output("train " + folder_ + "/mt.toml --quiet --steps 200 --out " + run + " --set data.train=" + file +
         ",data.dev=" + file);
  const Json packed = Json::parse(output("eval " + run + " --json"));
  const Json single = Json::parse(output("eval " + run + " --json --set data.pack=false"));
  EXPECT_EQ(packed["sequences"].get<int>(), 64);
  EXPECT_EQ(single["sequences"].get<int>(), 64);
  EXPECT_GT(single["sequence_accuracy"].get<double>(), 0.5);
  EXPECT_EQ(packed["sequence_accuracy"].get<double>(), single["sequence_accuracy"].get<double>());
  const Json split = Json::parse(output("eval " + run + " --json --mesh data:2 --layout batch:data"));
  EXPECT_EQ(split["sequence_accuracy"].get<double>(), single["sequence_accuracy"].get<double>());
}

// Nobody knows how many words a file of tokens has.
TEST_F(TrainCommand, FilesOfTokensHaveNoWords) {
  std::ofstream tokens(folder_ + "/words.u16", std::ios::binary);
  for (int i = 0; i < 300; ++i) {
    const std::uint16_t id = static_cast<std::uint16_t>(3 + 'a' + i % 7);
    tokens.write(reinterpret_cast<const char*>(&id), sizeof id);
  }
  tokens.close();
  const Json report =
      Json::parse(output("eval " + folder_ + "/lm --json --set data.format=tokens --data " + folder_ + "/words.u16"));
  EXPECT_GT(report["tokens"].get<int>(), 200);
  EXPECT_GT(report["log_perplexity"].get<double>(), 0);
  EXPECT_FALSE(report.contains("words"));
  EXPECT_FALSE(report.contains("log_perplexity_per_word"));
  EXPECT_TRUE(Json::parse(output("eval " + folder_ + "/lm --json")).contains("log_perplexity_per_word"));
}

TEST_F(TrainCommand, TwoFilesAreAsGoodAsOne) {
  const Json tsv = Json::parse(output("eval " + folder_ + "/mt --json --bleu"));
  ran("cut -f1 " + folder_ + "/pairs.tsv > " + folder_ + "/en; cut -f2 " + folder_ + "/pairs.tsv > " + folder_ + "/fr");
  const Json two = Json::parse(output("eval " + folder_ + "/mt --json --bleu --set data.format=pairs --data " +
                                      folder_ + "/en " + folder_ + "/fr"));
  for (const char* key : {"log_perplexity", "bleu", "words", "sentences"}) EXPECT_EQ(two[key], tsv[key]) << key;
}

TEST_F(TrainCommand, GeneratesTheSameOnEveryMesh) {
  const std::string line = "generate " + folder_ + "/lm --quiet --prompt one --prompt \"three 1\" --length 16 ";
  const std::string greedy = output(line);
  EXPECT_EQ(greedy.substr(0, 3), "one");
  EXPECT_EQ(output(line + "--mesh data:2 --layout batch:data"), greedy);
  EXPECT_EQ(output(line + "--mesh model:2 --layout heads,d_ff,vocab:model"), greedy);
  const std::string drawn = output(line + "--temperature 1 --seed 5");
  EXPECT_EQ(output(line + "--temperature 1 --seed 5 --mesh data:2 --layout batch:data"), drawn);
  EXPECT_NE(drawn, greedy);
}

// A prompt is a whole input, with its end, as in training; what is printed is the answer alone.
TEST_F(TrainCommand, APrefixModelAnswersPromptsOfUnlikeLengths) {
  write("prefix.toml", "name = \"prefix\"\n[model]\nprefix = true\nloss_on_targets_only = true\n" +
                           std::string(kModel) + "[data]\ntrain = \"" + folder_ + "/pairs.tsv\"\n" + kRun);
  output("train " + folder_ + "/prefix.toml --steps 40 --out " + folder_ + "/prefix");
  const std::vector<std::string> prompts = {"in 1", "in 12", "in", "in 7"};
  std::string together, alone;
  for (const std::string& prompt : prompts) {
    together += " --prompt \"" + prompt + "\"";
    alone += output("generate " + folder_ + "/prefix --quiet --prompt \"" + prompt + "\"");
  }
  const std::string line = "generate " + folder_ + "/prefix --quiet" + together;
  EXPECT_EQ(output(line), alone);
  EXPECT_EQ(output(line + " --mesh model:2 --layout heads,d_ff,vocab:model"), alone);
  EXPECT_EQ(alone.find("in 1"), std::string::npos) << alone;
  const Ran refused = weft(line + " --prefix in");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(
      refused.output,
      AllOf(HasSubstr("error: '"), HasSubstr("' answers its prompts one by one, and continues no shared text"),
            HasSubstr("where: --prefix\n"), HasSubstr("leave --prefix out, and put the text into the prompts")));
  const std::string json = output(line + " --json");
  EXPECT_EQ(Json::parse(json.substr(0, json.find('\n')))["prompt"].back(), 1);
}

TEST_F(TrainCommand, TranslatesLineByLine) {
  write("in.txt", "in 1\nin 2\nin 3\n");
  const std::string line = "translate " + folder_ + "/mt " + folder_ + "/in.txt --quiet ";
  const std::string greedy = output(line);
  EXPECT_EQ(std::count(greedy.begin(), greedy.end(), '\n'), 3);
  const std::string beams = output(line + "--beams 3 --n-best 2 --scores");
  EXPECT_EQ(std::count(beams.begin(), beams.end(), '\n'), 6);
  EXPECT_EQ(output(line + "--beams 3 --n-best 2 --scores --mesh model:2 --layout heads,d_ff,vocab:model"), beams);
  const std::string json = output(line + "--beams 3 --n-best 2 --json");
  const Json first = Json::parse(json.substr(0, json.find('\n')));
  EXPECT_EQ(first["hypotheses"].size(), 2u);
  const Json& best = first["hypotheses"][0];
  EXPECT_EQ(best["log_probabilities"].size(), best["ids"].size() + best.contains("end_token"));
  EXPECT_EQ(first["inputs"].back(), 1);
  EXPECT_EQ(output("translate " + folder_ + "/mt /dev/null --quiet"), "") << "a file without lines";
}

// A text that is made without a stop text has the stop text; with it, it ends before. Streamed and at the end alike.
TEST_F(TrainCommand, StopTextsEndATextBeforeThem) {
  const std::string line = "generate " + folder_ + "/lm --quiet --prompt one --length 16 ";
  const std::string all = output(line + "--set decode.never_end=true");
  const std::string stop = all.substr(6, 2);
  ASSERT_EQ(stop.find_first_of("'\n\\"), std::string::npos) << all;
  const std::string want = all.substr(0, all.find(stop, 3));
  const std::string stopped = line + "--set decode.never_end=true --stop '" + stop + "' --stop ',zq=\"'";
  EXPECT_EQ(output(stopped), want + "\n");
  const Json made = Json::parse(output(stopped + " --json"))["hypotheses"][0];
  EXPECT_EQ("one" + made["text"].get<std::string>(), want);
  EXPECT_EQ(made["stop"], stop);
  EXPECT_EQ(made["ended"], true);
  EXPECT_EQ(made["log_probabilities"].size(), made["ids"].size());
}

// Results do not depend on how many rows are decoded together; the plan says how many, and what they need.
TEST_F(TrainCommand, DecodesInBatchesThatFit) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "in " + std::to_string(i) + (i % 3 == 0 ? " and more\n" : "\n");
  write("many.txt", lines);
  const std::string line = "translate " + folder_ + "/mt " + folder_ + "/many.txt --quiet --beams 2 ";
  const std::string all = output(line);
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 20);
  EXPECT_EQ(output(line + "--batch 3"), all);
  EXPECT_EQ(output(line + "--batch 4 --mesh data:2 --layout batch:data"), all);
  EXPECT_EQ(Json::parse(output("eval " + folder_ + "/mt --json --bleu --batch 3"))["bleu"],
            Json::parse(output("eval " + folder_ + "/mt --json --bleu"))["bleu"]);

  const std::string plan = output(line + "--batch 3 --dry-run");
  for (const char* piece : {"batch      3 rows of ", " positions, 2 beams; the longest prompt has ", "  weights  ",
                            "  caches   ", "  arena    ", " (a step ", ", reading prompts "})
    EXPECT_THAT(plan, HasSubstr(piece)) << plan;
  EXPECT_THAT(output(line + "--dry-run"), HasSubstr("batch      20 rows of "));
  EXPECT_THAT(output(line + "--dry-run --set decode.memory=1GiB"), HasSubstr(", of 1 GiB\n"));
  EXPECT_THAT(output("generate --help"), HasSubstr("decode.batch: rows that are decoded together"));

  const auto expect = [&](const std::string& options, const std::vector<std::string>& pieces) {
    const Ran refused = weft(line + options);
    EXPECT_EQ(refused.code, 2) << refused.output;
    for (const std::string& piece : pieces) EXPECT_THAT(refused.output, HasSubstr(piece)) << options;
  };
  expect("--batch=-1", {"setting 'decode.batch' is a whole number from 0 on", "where: --set decode.batch=-1\n"});
  expect("--set decode.memory=much",
         {"'much' is no number of bytes", "where: --set decode.memory=much\n", "write sizes like 512MiB or 2GiB"});
  expect("--set decode.memory=1KiB",
         {"a batch of 1 with ", " positions needs ", " on each processor, and it may have 1 KiB\n",
          ", --set decode.memory=1KiB\n",
          "fix:   give a smaller --length, or more memory with --set decode.memory=SIZE\n"});
  int memory = 1;  // MiB, for one row
  const auto with_memory = [&] {
    return "--length 2000 --dry-run --set decode.memory=" + std::to_string(memory) + "MiB";
  };
  while (memory < 1024 && weft(line + with_memory() + " --batch 1").code != 0) memory *= 2;
  expect(with_memory() + " --batch 20",
         {"a batch of 20 with 2000 positions needs ", " on each processor, and it may have ", "fix:   give --batch "});
  EXPECT_THAT(output(line + with_memory()), HasSubstr(" of 2000 positions, 2 beams")) << "fewer rows are chosen";
}

// Scores and translations come from one session, with copies of the weights of different forms.
TEST_F(TrainCommand, ScoresRoundedWeights) {
  const std::string line = "eval " + folder_ + "/mt --json --bleu";
  const Json exact = Json::parse(output(line));
  for (const std::string weights : {"bf16", "int8"}) {
    const Json rounded = Json::parse(output(line + " --set decode.weights=" + weights));
    EXPECT_NEAR(rounded["log_perplexity"], exact["log_perplexity"], 0.05) << weights;
    EXPECT_NE(rounded["log_perplexity"], exact["log_perplexity"]) << weights;
    EXPECT_EQ(rounded["sentences"], exact["sentences"]);
  }
}

// A vocabulary of bytes divides a text anywhere: prefix and prompt together are a prompt.
TEST_F(TrainCommand, ReadsAPrefixOfAllPromptsOnce) {
  const std::string line = "generate " + folder_ + "/lm --quiet --length 24 ";
  const std::string whole = output(line + "--prompt 'one two' --prompt 'one three'");
  const std::size_t second = whole.find("\none three") + 1;
  const std::string want = whole.substr(4, second - 4) + whole.substr(second + 4);
  EXPECT_EQ(output(line + "--prefix 'one ' --prompt two --prompt three"), want);
  EXPECT_EQ(output(line + "--prefix 'one ' --prompt two"), want.substr(0, second - 4));
  const Ran refused = weft("generate " + folder_ + "/lm --length 6 --prefix 'one ' --prompt three");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, HasSubstr("the prompt has 9 tokens and leaves no room for more"));
}

// A reader that has read enough ends the command, without a message.
TEST_F(TrainCommand, ABrokenPipeEndsAStream) {
  const std::string stderr_file = folder_ + "/stderr";
  const std::string line = std::string(WEFT_COMMAND) + " generate " + folder_ + "/lm --quiet --length 16";
  for (const std::string& prompts : {std::string(" --prompt one"), " --prompts " + folder_ + "/words.txt"}) {
    const Ran piped =
        ran("bash -c '{ " + line + prompts + " 2> " + stderr_file + "; echo $? >> " + stderr_file + "; } | head -c 1'");
    EXPECT_EQ(piped.output.size(), 1u);
    std::ifstream file(stderr_file);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_TRUE(text == "141\n" || text == "0\n") << text;  // SIGPIPE, or it was faster than the reader
  }
}

// Nothing is generated for a reader that has gone, also where its signal is ignored, nor for a full disk.
TEST_F(TrainCommand, LostOutputEndsAStream) {
  const std::string line = std::string(WEFT_COMMAND) + " generate " + folder_ + "/lm --length 16 ";
  for (const std::string& prompts : {std::string("--prompt one"), "--prompts " + folder_ + "/words.txt"}) {
    const Ran full = ran(line + prompts + " 2>&1 > /dev/full");
    EXPECT_EQ(full.code, 3);
    EXPECT_THAT(full.output, StartsWith("error: what the command prints cannot be written\n")) << "and no speed";
    const Ran gone =
        ran("bash -c 'trap \"\" PIPE; { sleep 0.1; " + line + prompts + " 2>&1 1>&3; echo $?; } 3> >(exec true)'");
    EXPECT_EQ(gone.output, "0\n");
  }
}

// Out to a plain file, with q, k and v apart, and back: a checkpoint that is used and trained like any other.
TEST_F(TrainCommand, ExportedWeightsComeBack) {
  const std::string file = folder_ + "/plain.safetensors";
  output("export " + folder_ + "/lm --out " + file + " --split-qkv");
  output("import " + file + " --join-qkv --config " + folder_ + "/lm.toml --out " + folder_ + "/back/step-00000000");
  const std::string line = " --quiet --prompt one --length 16";
  EXPECT_EQ(output("generate " + folder_ + "/back" + line), output("generate " + folder_ + "/lm" + line));
  const Ran trained = weft("train " + folder_ + "/lm.toml --out " + folder_ + "/back --steps 2");
  EXPECT_EQ(trained.code, 0) << trained.output;
  EXPECT_THAT(trained.output, AllOf(HasSubstr("going on from"), HasSubstr("done at step 2")));
}

TEST_F(TrainCommand, RefusesWhatCannotBe) {
  const auto expect = [&](const std::string& line, const std::string& what, const std::string& fix) {
    const Ran refused = weft(line);
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_THAT(refused.output, AllOf(HasSubstr(what), HasSubstr(fix))) << line;
  };
  expect("train /nowhere.toml", "cannot read the config '/nowhere.toml'", "configs/lm-demo.toml");
  expect("train " + folder_ + "/lm.toml --set model.layer=3", "there is no setting 'model.layer'", "model.layers");
  expect("generate " + folder_ + "/mt", "is a translation model", "use weft translate");
  expect("translate " + folder_ + "/lm", "is a language model", "use weft generate");
  expect("generate /nowhere", "/nowhere", "");
  expect("generate " + folder_ + "/lm --prompts /nowhere.txt", "cannot read '/nowhere.txt'",
         "give the path of a text file, or - for standard input");
  expect("generate " + folder_ + "/lm --stop $(printf '\\377')", "a stop text is not UTF-8",
         "give a text in UTF-8: no text that is made contains half a character");
  expect("generate " + folder_ + "/lm --set model.layers=2",
         "the model is another than that of '" + folder_ + "/lm/step-00000008': model.layers is 1 there and 2 here; ",
         "leave the settings of [model] as they were in training");
  expect("eval " + folder_ + "/lm --bleu",
         "'" + folder_ + "/lm/step-00000008' is a model of kind 'lm', which translates nothing", "leave --bleu out");
  expect("eval " + folder_ + "/lm --set data.dev=[]",
         "there is nothing to evaluate on: the config of '" + folder_ + "/lm/step-00000008' has no data.dev",
         "name the files: --data dev.txt");
  EXPECT_EQ(weft("eval " + folder_ + "/lm --per-line /nowhere/x").code, 3);
}

// Each fix is carried out as it is written.
TEST_F(TrainCommand, FixesWorkAsPrinted) {
  const std::string lm = " " + folder_ + "/lm ", words = folder_ + "/words.txt";
  const auto expect = [&](const std::string& line, const std::vector<std::string>& pieces) {
    const Ran refused = weft(line);
    EXPECT_EQ(refused.code, 2) << refused.output;
    for (const std::string& piece : pieces) EXPECT_THAT(refused.output, HasSubstr(piece)) << line;
  };

  expect("eval" + lm + "--data /nowhere.txt", {"cannot read '/nowhere.txt'", "or - for standard input"});
  Json file = Json::parse(output("eval" + lm + "--json --data " + words));
  Json input = Json::parse(output("eval" + lm + "--json --data - < " + words));
  file.erase("data");
  input.erase("data");
  EXPECT_EQ(input, file);
  expect("eval" + lm + "--data - - < " + words,
         {"--data names standard input twice", "give one -, and the path of a file for the rest"});
  expect("eval" + lm + "--data - --wire mpi < " + words,
         {"--data names standard input, which only one process of a job has",
          "write the text to a file that every process can read, and name that"});

  expect("generate" + lm + "--n-best 3", {"the option n_best of decoding cannot be 3", "where: --set decode.n_best=3\n",
                                          "search with as many beams: 3 (--beams 3); there are 1"});
  EXPECT_EQ(Json::parse(output("generate" + lm + "--quiet --json --n-best 3 --beams 3"))["hypotheses"].size(), 3u);
  expect("generate" + lm + "--n-best 3 --temperature 1", {"give 1: sampling makes one text for each prompt"});
  expect("generate" + lm + "--beams 3 --temperature 1",
         {"search with temperature 0 (--temperature 0), or sample with one beam (--beams 1)"});

  expect("generate" + lm + "--top-p 0 --temperature 1",
         {"the option top_p of decoding cannot be 0", "fix:   give a number above 0, up to 1\n"});
  expect("generate" + lm + "--temperature=-1", {"fix:   give a finite number from 0 on\n"});

  expect("generate" + lm + "--length 4 --prompt 'one two three four five'",
         {"the prompt has 23 tokens and leaves no room for more: decode.max_length is 4, prompt counted",
          "where: --set decode.max_length=4\n", "give --length 24 or more, or shorten the prompt"});
  expect("generate" + lm + "--prompt one --prompt 'one two three four five'",
         {"prompt 2 has 23 tokens", "/config.toml:"});
  EXPECT_EQ(output("generate" + lm + "--quiet --length 24 --prompt 'one two three four five'").substr(0, 23),
            "one two three four five");

  expect("generate" + lm + "--stop ''", {"a stop text is empty", "where: --set decode.stop="});
  expect("generate" + lm + "--repetition-penalty 0",
         {"the option repetition_penalty of decoding cannot be 0", "where: --set decode.repetition_penalty=0"});
  expect("generate" + lm + "--min-tokens 9 --length 8",
         {"the option min_tokens of decoding cannot be 9", "where: --set decode.min_tokens=9\n"});
  expect("generate" + lm + "--set decode.stop_tokens=[999]",
         {"the stop token 999 is not in the vocabulary", "where: --set decode.stop_tokens=[999]\n"});
  expect("generate" + lm + "--set decode.stop_tokens=7", {"setting 'decode.stop_tokens' is a list of ids"});

  expect("generate" + lm + "--top-k 3",
         {"--top-k has no effect: at temperature 0 the likeliest token is always taken", "where: command line\n",
          "add --temperature 1 to draw tokens, or leave --top-k out"});
  expect("generate" + lm + "--top-p 0.5", {"--top-p has no effect", "or leave --top-p out"});
  EXPECT_EQ(weft("generate" + lm + "--top-k 3 --temperature 1").code, 0);
  EXPECT_THAT(weft("generate" + lm + "--set decode.top_k=3").output,
              HasSubstr("warning: decode.top_k has no effect at temperature 0; add --temperature 1 to draw tokens\n"));
}

// A mistake in a config is placed in the config, not in Weft's own code.
TEST_F(TrainCommand, MistakesAreFoundInTheConfig) {
  std::ifstream file(folder_ + "/lm.toml");
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const auto where_of = [&](const std::string& from, const std::string& to, const std::string& options = "") {
    std::string text = whole;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    write("wrong.toml", text);
    const Ran refused = weft("train " + folder_ + "/wrong.toml --out " + folder_ + "/wrong " + options);
    EXPECT_EQ(refused.code, 2) << refused.output;
    EXPECT_EQ(refused.output.find("src/"), std::string::npos) << refused.output;
    const std::size_t at = refused.output.find("where: ") + 7;
    std::string where = refused.output.substr(at, refused.output.find('\n', at) - at);
    const std::size_t folder = where.find(folder_ + "/");
    return folder == std::string::npos ? where : where.erase(folder, folder_.size() + 1);
  };
  EXPECT_EQ(where_of("heads = 2", "heads = 0"), "wrong.toml:4 (model.heads)");
  EXPECT_EQ(where_of("\"rotary\"", "\"learned\"\nmax_length = 8"), "wrong.toml:23 (batch.length)");
  EXPECT_EQ(where_of("\"adam\"", "\"adamm\""), "wrong.toml:15 (optimizer.name)");
  EXPECT_EQ(where_of("\"adam\"", "\"adam\"\nbeta1 = 2.0"), "wrong.toml:16 (optimizer.beta1)");
  EXPECT_EQ(where_of("\"adam\"", "\"adam\"\nmomentum = 0.5"), "wrong.toml:16 (optimizer.momentum)");
  EXPECT_EQ(where_of("\"adam\"", "\"adam\"\nrules = [\"nothing: frozen\"]"), "wrong.toml:16 (optimizer.rules)");
  EXPECT_EQ(where_of("constant 0.01", "constnt 0.01"),
            "wrong.toml:16 (optimizer.schedule), schedule \"constnt 0.01\", column 1");
  EXPECT_EQ(where_of("[batch]", "[mesh]\nmesh = \"data:3\"\nlayout = \"batch:data\"\n[batch]"),
            "wrong.toml:22 (mesh.layout), layout \"batch:data\", mesh data:3");
  EXPECT_EQ(where_of("", "", "--mesh data:2 --layout batchh:data"),
            "--set mesh.layout=\"batchh:data\", layout \"batchh:data\", mesh data:2");
  const std::string store = "--mesh data:2 --set mesh.store=*:";
  EXPECT_EQ(where_of("", "", store + "dtaa"), "--set mesh.store=*:dtaa, storage layout \"*:dtaa\", mesh data:2");
  EXPECT_EQ(where_of("", "", store + "data --set mesh.store_level=4"),
            "--set mesh.store_level=4, storage layout \"*:data\"");
  EXPECT_THAT(where_of("", "", "--set mesh.memory=1KiB"), StartsWith("--set mesh.memory=1KiB, "));
  EXPECT_EQ(where_of("", "", "--mesh data"), "--set mesh.mesh=\"data\", mesh \"data\", column 1");
  EXPECT_EQ(where_of("[batch]", "[mesh]\ndevice = \"abacus\"\n[batch]"), "wrong.toml:21 (mesh.device)");
  if (weft("doctor").output.find("not used: ") != std::string::npos) {  // the device cuda
    EXPECT_THAT(where_of("[batch]", "[mesh]\ndevice = \"cuda\"\n[batch]"), StartsWith("wrong.toml:21 (mesh.device)"));
  }
  EXPECT_EQ(where_of("", "", "--wire pigeons"), "--set mesh.wire=\"pigeons\"");
  EXPECT_EQ(where_of("", "", "--device abacus"), "--set mesh.device=\"abacus\"");
  EXPECT_THAT(
      weft("generate " + folder_ + "/lm --set mesh.device=abacus").output,
      AllOf(HasSubstr("there is no device 'abacus'"), HasSubstr("set mesh.device to one of: \"cpu\", \"reference\"")));
  EXPECT_THAT(weft("eval " + folder_ + "/lm --wire pigeons").output,
              AllOf(HasSubstr("there is no wire 'pigeons'"),
                    HasSubstr("set mesh.wire to \"threads\", \"mpi\" or \"nccl\", or leave it out")));
}

TEST_F(TrainCommand, ACheckpointWithoutItsConfigIsRefused) {
  output("export " + folder_ + "/lm --out " + folder_ + "/bare.safetensors");
  output("import " + folder_ + "/bare.safetensors --like " + folder_ + "/lm --out " + folder_ + "/bare");
  const Ran refused = weft("eval " + folder_ + "/bare");
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.output, AllOf(HasSubstr("the checkpoint '"), HasSubstr("' has no config.toml"),
                                    HasSubstr("put the config that it was trained with there")));
}

}  // namespace
}  // namespace weft::train_command_test
