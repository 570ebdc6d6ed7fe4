// weft bench lm: the losses of the golden model on every mesh and layout, what it prints and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"

namespace weft::test::bench_lm_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

Ran bench_lm(const std::string& arguments) { return ran(str(WEFT_COMMAND, " bench lm ", arguments, " 2>&1")); }

Json measured(const std::string& arguments) {
  const Ran result = bench_lm(arguments + " --json");
  EXPECT_EQ(result.code, 0) << result.output;
  return Json::accept(result.output) ? Json::parse(result.output) : Json();
}

std::string lower_case(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return word;
}

std::vector<double> golden_losses() {
  std::ifstream file(str(WEFT_TEST_DATA, "/golden/lm_tiny/case.json"));
  return Json::parse(file).at("losses_float64");
}

struct Row {
  std::string name, mesh, layout, more;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class BenchLmLosses : public testing::TestWithParam<Row> {};

TEST_P(BenchLmLosses, AreTheGoldenOnes) {
  const Row& row = GetParam();
  const Json json =
      measured(str("--config tiny --steps 7 --mesh '", row.mesh, "' --layout '", row.layout, "' ", row.more));
  const std::vector<double> want = golden_losses(), got = json.at("losses10");
  ASSERT_EQ(got.size(), 10u);
  for (std::size_t i = 0; i < 10; ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * want[i]) << "step " << i + 1;
  EXPECT_EQ(json.at("loss_first"), got[0]);
  EXPECT_EQ(json.at("loss_last"), got[9]);
}

const std::string kModel = "heads,d_ff,vocab:all", kBoth = "batch:rows heads,d_ff,vocab:cols";

INSTANTIATE_TEST_SUITE_P(PeerTables, BenchLmLosses,
                         testing::Values(Row{"OneProcessor", "", "", ""}, Row{"Batch2", "all:2", "batch:all", ""},
                                         Row{"Batch4", "all:4", "batch:all", ""}, Row{"Model2", "all:2", kModel, ""},
                                         Row{"Model4", "all:4", kModel, ""},
                                         Row{"Model8", "all:8", "d_ff,vocab:all", ""},
                                         Row{"Both2x2", "rows:2 cols:2", kBoth, ""},
                                         Row{"Both2x4", "rows:2 cols:4", kBoth, ""},
                                         Row{"OneProcessorOfTheReference", "", "", "--device reference"},
                                         Row{"Both2x2OfTheReference", "rows:2 cols:2", kBoth, "--device reference"},
                                         Row{"OneWorker", "", "", "--workers 1"},
                                         Row{"LossInChunks", "all:2", "batch:all", "--loss-chunks 2"},
                                         Row{"Batch4Store1", "all:4", "batch:all", "--store '*:all'"},
                                         Row{"Batch2Store3", "all:2", "batch:all", "--store '*:all' --store-level 3"}),
                         [](const auto& info) { return info.param.name; });

TEST(BenchLm, HasTheKeysOfThePeersAndItsOwn) {
  const Json json = measured("--config tiny --steps 2 --warmup 1 --mesh all:2 --layout batch:all");
  for (const char* key :
       {"ms_per_step", "ms_min", "ms_max", "cpu_ms_per_step", "tokens_per_s", "peak_rss_mb", "setup_s", "compile_s", "plan_s",
        "bind_s", "variable_bytes", "arena_bytes", "scratch_bytes", "gflop_per_step", "gflops", "work_ratio"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_EQ(json["system"], "weft");
  EXPECT_EQ(json["config"], "tiny");
  EXPECT_EQ(json["mesh"], "all:2");
  EXPECT_EQ(json["layout"], "batch:all");
  EXPECT_EQ(json["device"], "cpu");
  EXPECT_EQ(json["dtype"], "f32");
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["losses10"].size(), 3u);
  EXPECT_LE(json["ms_min"], json["ms_per_step"]);
  EXPECT_LE(json["ms_per_step"], json["ms_max"]);
  EXPECT_GE(json["setup_s"].get<double>(), json["compile_s"].get<double>());
  EXPECT_NEAR(json["compile_s"].get<double>(), json["plan_s"].get<double>() + json["bind_s"].get<double>(), 2e-4);
  EXPECT_NEAR(json["gflop_per_step"].get<double>(),
              3 * 2 * 128 * (2 * (4 * 64 * 64 + 2 * 64 * 128 + 2 * 32 * 64) + 64 * 256) * 1e-9, 1e-4);
}

// Nothing outside the plan grows with the model. A smaller batch leaves `medium` the widths of its products.
TEST(BenchLm, ResidentMemoryIsThePlanAndOneConstant) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has memory of its own";
#endif
  for (const char* config : {"tiny", "small", "medium --set batch=2"})
    for (const std::string& processors : {std::string("--workers 1"), std::string("--workers 2"),
                                          str("--workers 1 --mesh 'rows:2 cols:2' --layout '", kBoth, "'")}) {
      const Json json = measured(str("--config ", config, " --steps 1 --warmup 1 ", processors));
      EXPECT_LE(json.at("unplanned_bytes").get<double>(), json.at("unplanned_limit_bytes").get<double>())
          << config << " " << processors;
      EXPECT_EQ(json.at("unplanned_limit_bytes"), std::int64_t{48} << 20);
      EXPECT_NEAR(json.at("peak_rss_mb").get<double>() * (1 << 20),
                  json.at("unplanned_bytes").get<double>() +
                      json.at("processors").get<double>() *
                          (json.at("variable_bytes").get<double>() + json.at("arena_bytes").get<double>() +
                           json.at("scratch_bytes").get<double>()),
                  1e5);
    }
}

// The first loss of a fresh model is near log(vocab) whatever its sizes; bf16 rounds it, and not much.
TEST(BenchLm, TakesOtherSizesDtypesAndOptimizers) {
  const Json other = measured(
      "--config tiny --set vocab=100,d_model=24,heads=3,d_kv=8 --set d_ff=40,layers=1,length=10,batch=2 --steps 1 "
      "--warmup 0");
  EXPECT_EQ(other["sizes"]["heads"], 3);
  EXPECT_NEAR(other["loss_first"].get<double>(), std::log(100.0), 1);
  const Json narrow = measured("--config tiny --steps 2 --warmup 0 --dtype bf16");
  EXPECT_EQ(narrow["dtype"], "bf16");
  for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(narrow["losses10"][i].get<double>(), golden_losses()[i], 0.06);
  const Json adafactor = measured("--config tiny --steps 3 --warmup 0 --optimizer adafactor --lr 0.01");
  EXPECT_NEAR(adafactor["losses10"][0].get<double>(), golden_losses()[0], 1e-5);
  EXPECT_LT(adafactor["losses10"][2].get<double>(), adafactor["losses10"][0].get<double>());
}

// The models for cards, at sizes for a test: bf16 by default, any case, losses near log(vocab) that fall.
TEST(BenchLm, HasTheModelsForCards) {
  for (const char* config : {"gpt2-124M", "gpt2-1.5b", "WIDE", "llama-1B", "paper-0.67b", "paper-4.9b"}) {
    const std::string sizes = "vocab=128,d_model=32,heads=2,d_kv=16,d_ff=64,layers=2,length=16,batch=2";
    const Json json = measured(str("--config ", config, " --set ", sizes, " --steps 3 --warmup 2"));
    EXPECT_EQ(json["dtype"], "bf16") << config;
    EXPECT_EQ(json["config"], lower_case(config));
    EXPECT_NEAR(json["loss_first"].get<double>(), std::log(128.0), 0.2) << config;
    EXPECT_LT(json["loss_last"].get<double>(), json["loss_first"].get<double>()) << config;
    const Json split = measured(str("--config ", config, " --set ", sizes, " --dtype f32 --steps 3 --warmup 2"));
    const Json whole = measured(str("--config ", config, " --set ", sizes,
                                    " --dtype f32 --steps 3 --warmup 2 --mesh 'rows:2 cols:2' --layout '", kBoth, "'"));
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(split["losses10"][i].get<double>(), whole["losses10"][i].get<double>(), 1e-5) << config;
  }
}

// The keys of the programs for GPUs in bench/peers; MFU beside a product that was measured.
TEST(BenchLm, HasTheKeysOfThePeersForCards) {
  const Json json = measured("--config tiny --dtype bf16 --steps 3 --warmup 1 --load 0.05 --roofs");
  for (const char* key : {"ms", "ms_mean", "tok_s", "tflops_causal", "gemm_tflops", "mfu_causal_meas", "mfu_full_meas",
                          "loss0", "first_loss_s"}) {
    ASSERT_TRUE(json.contains(key)) << key;
    EXPECT_GT(json[key].get<double>(), 0) << key;
  }
  EXPECT_EQ(json["B"], 4);
  EXPECT_EQ(json["S"], 32);
  EXPECT_EQ(json["ms"], json["ms_per_step"]);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_GT(json["mfu_full_meas"], json["mfu_causal_meas"]);
  EXPECT_FALSE(json.contains("mfu_causal_989"));  // of a card
}

TEST(BenchLm, TellsAPerson) {
  const Ran result = bench_lm("--config tiny --steps 1 --warmup 0 --mesh all:2 --layout batch:all");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.output, AllOf(StartsWith("lm tiny, mesh all:2, layout \"batch:all\", f32, adam"),
                                   HasSubstr("\n  step "), HasSubstr(" GFLOP/s "), HasSubstr("\n  loss      6.00")));
  EXPECT_THAT(bench_lm("--help").output,
              AllOf(HasSubstr("--layout"), HasSubstr("medium: batch=8 "), HasSubstr("docs/bench.md")));
}

void expect_refused(const std::string& arguments, const std::string& what, const std::string& fix) {
  SCOPED_TRACE(arguments);
  const Ran result = bench_lm(arguments);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.output, AllOf(StartsWith("error: " + what), HasSubstr("\nfix:   " + fix)));
}

TEST(BenchLm, RefusesWhatMakesNoSense) {
  expect_refused("--config smal", "bench lm has no config 'smal'\nwhere: --config smal",
                 "did you mean 'small'? it has: tiny, small, medium, gpt2-124m, gpt2-1.5b, wide, llama-1b, paper-0.67b, paper-4.9b\n");
  expect_refused("--dtype f64", "bench lm has no dtype 'f64'", "did you mean 'f32'? it has: f32, bf16\n");
  expect_refused("--optimizer sgd", "bench lm has no optimizer 'sgd'", "it has: adam, adafactor\n");
  expect_refused("--steps 0", "--steps of bench lm cannot be 0", "give a number from 1 to 1e+06\n");
  expect_refused("--loss-chunks 0", "--loss-chunks of bench lm cannot be 0", "give a number from 1 to 1e+06\n");
  expect_refused("--load -1", "--load of bench lm cannot be -1", "give a number from 0 to 3600\n");
  expect_refused("--lr -1", "--lr of bench lm cannot be -1", "give a number from 0 to 1000\n");
  expect_refused("--config tiny --set seq=4", "model 'lm/tiny' has no size 'seq' to set", "it has: ");
  expect_refused("--config tiny --device fast", "there is no device 'fast'", "use ");
  expect_refused("--config tiny --wire tin", "there is no wire 'tin'", "use ");
  expect_refused("--config tiny --layout batch:all", "", "");
  expect_refused("--config tiny --mesh all:8 --layout heads:all", "", "");
}

}  // namespace
}  // namespace weft::test::bench_lm_test
