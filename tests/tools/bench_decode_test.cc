// weft bench decode: what it prints and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  for (const char* key : {"tokens_per_s", "ms_per_step", "prefill_s", "decode_s", "steps"})
    EXPECT_GT(json[key].get<double>(), 0) << key;
}

TEST(BenchDecode, TellsAPerson) {
  const Ran result = bench_decode("--batch 2 --max-length 8 --prompt-lengths 2 --rows 3 --repeats 1");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, AllOf(HasSubstr(", batch 2, 1 beam, max_length 8, 3 rows with prompts of 2 tokens\n"),
                                   HasSubstr("\n  tokens    18, "), HasSubstr("\n  steps     ")));
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
  expect_refused("--set model.kind=encoder",
                 str("the model of '", WEFT_TEST_DATA, "/../configs/lm-demo.toml' does not decode"),
                 "give a config of kind lm or encoder_decoder\n");
}

}  // namespace
}  // namespace weft::test::bench_decode_test
