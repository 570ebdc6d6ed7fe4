// weft bench decode: what it prints and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"

namespace weft::test::bench_decode_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

// A small model of the config of the demo.
Ran bench_decode(const std::string& arguments) {
  return ran(str(WEFT_COMMAND, " bench decode --config ", WEFT_TEST_DATA, "/../configs/lm-demo.toml --set ",
                 "model.d_model=32,model.heads=2,model.d_kv=16,model.d_ff=64,model.layers=1,model.vocab=300,",
                 "data.vocabulary=bytes ", arguments, " 2>&1"));
}

// Of the products of a step: qkv and o, the feed-forward net, and the logits of a vocabulary of 384, a multiple of 128.
constexpr std::int64_t kStepWeights = 4 * 32 * 32 + 3 * 32 * 64 + 384 * 32;

// A file of this text, as long as the object exists.
struct WorkFile {
  explicit WorkFile(const std::string& text) { std::ofstream(path) << text; }
  ~WorkFile() { std::remove(path.c_str()); }
  WorkFile(const WorkFile&) = delete;
  WorkFile& operator=(const WorkFile&) = delete;

  const std::string path = str(testing::TempDir(), getpid(), "-work.txt");
};

Json measured(const std::string& arguments) {
  const Ran result = bench_decode(arguments + " --json");
  EXPECT_EQ(result.code, 0) << result.output;
  return Json::accept(result.output) ? Json::parse(result.output) : Json();
}

TEST(BenchDecode, CountsTokensStepsAndBytes) {
  const Json json = measured("--batch 4 --beams 2 --max-length 20 --prompt-lengths 3,6 --tokens 5 --repeats 1");
  EXPECT_EQ(json["system"], "weft");
  EXPECT_EQ(json["batch"], 4);
  EXPECT_EQ(json["beams"], 2);
  EXPECT_EQ(json["rows"], 4);
  EXPECT_EQ(json["tokens"], 4 * 5);
  EXPECT_EQ(json["cache_bytes"], 2 * 4 * 2 * 20 * 32 * 4);
  EXPECT_EQ(json["prompt_tokens"], 3 + 6 + 5 + 4);
  EXPECT_EQ(json["max_length"], 20);
  EXPECT_EQ(json["weight_bytes"], 4 * kStepWeights);
  for (const char* key : {"seconds", "tokens_per_s", "step_tokens_per_s", "prompt_tokens_per_s", "ms_per_step",
                          "prefill_s", "decode_s", "steps", "weight_gb_per_s", "prompt_gflops", "peak_rss_mb"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
  EXPECT_GE(json["seconds"].get<double>(), json["decode_s"].get<double>());
  EXPECT_FALSE(json.contains("read_gb_per_s"));
}

TEST(BenchDecode, ReadsAndWritesWhatAFileSays) {
  const WorkFile file("3 5\n1 1\n7 2\n");
  const std::string work = "--work " + file.path + " --batch 2 --repeats 1 ";
  const Json json = measured(work);
  EXPECT_EQ(json["rows"], 3);
  EXPECT_EQ(json["prompt_tokens"], 3 + 1 + 7);
  EXPECT_EQ(json["tokens"], 5 + 1 + 2);
  EXPECT_EQ(json["max_length"], 9);
  const Json first = measured(work + "--rows 1 --max-length 64");
  EXPECT_EQ(first["tokens"], 5);
  EXPECT_EQ(first["max_length"], 64);
}

TEST(BenchDecode, CountsTheKeysAndValuesThatStepsRead) {
  const Json json = measured("--batch 2 --prompt-lengths 3 --tokens 4 --max-length 16 --repeats 1");
  const double of_position = json["cache_bytes"].get<double>() / (2 * 16);
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["step_read_bytes"], 4 * kStepWeights + 2 * of_position * (4 + 5 + 6 + 7) / 4);
}

TEST(BenchDecode, SpreadsTheTokensToGenerate) {
  const Json json = measured("--batch 2 --rows 3 --prompt-lengths 4 --tokens 2,4 --repeats 1");
  EXPECT_EQ(json["tokens"], 2 + 3 + 4);
  EXPECT_EQ(json["prompt_tokens"], 3 * 4);
}

TEST(BenchDecode, TakesTheModelsOfBenchLm) {
  const Ran result = ran(str(WEFT_COMMAND, " bench decode --config TINY --batch 2 --prompt-lengths 4 --tokens 3 ",
                             "--repeats 1 --json 2>&1"));
  ASSERT_EQ(result.code, 0) << result.output;
  const Json json = Json::parse(result.output);
  EXPECT_EQ(json["max_length"], 7);
  EXPECT_EQ(json["tokens"], 2 * 3);
  EXPECT_EQ(json["weights"], "f32");
  EXPECT_EQ(json["weight_bytes"], 4 * (2 * (4 * 64 * 64 + 2 * 64 * 128) + 256 * 64));
  EXPECT_GT(json["ms_token"].get<double>(), 0);
}

TEST(BenchDecode, ComparesWithRoofs) {
  const Json json = measured("--batch 2 --tokens 3 --repeats 1 --roofs");
  for (const char* key :
       {"read_gb_per_s", "read_share", "product_gflops", "peak_gflops", "product_share", "peak_share"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
  const double reads = json["step_read_bytes"].get<double>() / json["weight_bytes"].get<double>();
  EXPECT_NEAR(json["read_share"].get<double>(),
              reads * json["weight_gb_per_s"].get<double>() / json["read_gb_per_s"].get<double>(), 0.01);
  EXPECT_THAT(bench_decode("--batch 2 --tokens 3 --repeats 1 --roofs").output,
              AllOf(HasSubstr(" % of the roof of "), HasSubstr(" % of a large product's ")));
}

TEST(BenchDecode, TellsAPerson) {
  const Ran result = bench_decode("--batch 2 --max-length 8 --prompt-lengths 2 --rows 3 --repeats 1");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output,
              AllOf(HasSubstr(", batch 2, 1 beam, max_length 8, 3 rows\n"), HasSubstr("\n  tokens    18, "),
                    HasSubstr("\n  steps     "), HasSubstr("\n  prompts   6 tokens, "), HasSubstr("\n  weights   ")));
  EXPECT_THAT(bench_decode("--help").output, AllOf(HasSubstr("--prompt-lengths"), HasSubstr("docs/bench.md")));
}

TEST(BenchDecode, RefusesWhatMakesNoSense) {
  const auto expect_refused = [](const std::string& arguments, const std::string& what, const std::string& fix) {
    const Ran result = bench_decode(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.output, AllOf(StartsWith("error: " + what), HasSubstr("\nfix:   " + fix)));
  };
  expect_refused("--batch 0", "--batch of bench decode cannot be 0", "give a number from 1 on\n");
  expect_refused("--repeats 0", "--repeats of bench decode cannot be 0", "give a number from 1 on\n");
  expect_refused("--max-length 8 --prompt-lengths 8", "prompt 0 has 8 tokens; there is room for 7", "shorten it");
  for (const char* range : {"5,3", "1,2,3", "-1"})
    expect_refused(str("--prompt-lengths ", range), str("'", range, "' is not a range of lengths"),
                   "give a number from 0 on, or the least and the most, like 16,256\n");
  expect_refused("--tokens 0", "'0' is not a range of lengths", "give a number from 1 on, or the least and the most");
  expect_refused("--max-length 16 --prompt-lengths 8 --tokens 9", "a row needs 17 positions; --max-length is 16",
                 "give --max-length 17, or fewer tokens\n");
  expect_refused("--set model.kind=encoder",
                 str("the model of '", WEFT_TEST_DATA, "/../configs/lm-demo.toml' does not decode"),
                 "give a config of kind lm or encoder_decoder\n");
}

TEST(BenchDecode, RefusesFilesWithoutRows) {
  const auto expect_refused = [](const std::string& text, const std::string& what, const std::string& where,
                                 const std::string& fix) {
    const WorkFile file(text);
    const Ran result = bench_decode("--work " + file.path);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.output, AllOf(StartsWith("error: " + what), HasSubstr(where), HasSubstr("\nfix:   " + fix)));
  };
  for (const char* line : {"14", "14 16 18", "14 x", "0 3", "3 0", "-2 4"})
    expect_refused(str("3 4\n", line, "\n"), str("'", line, "' is not a row to decode"), "work.txt:2\n",
                   "write two numbers from 1 on, the tokens to read and the tokens to generate, like 14 16\n");
  expect_refused("", str("'", WorkFile("").path, "' has no rows to decode"), "\nwhere: --work ",
                 "write a line for each row: the tokens to read and the tokens to generate, like 14 16\n");
}

}  // namespace
}  // namespace weft::test::bench_decode_test
