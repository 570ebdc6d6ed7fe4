// weft export --stablehlo as a user meets it: a module and its manifest, without data files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"

namespace weft::export_stablehlo_test {
namespace {

namespace fs = std::filesystem;
using test::Ran;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ExportStableHlo : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / str("weft_stablehlo_", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    std::ofstream(folder_ / "tiny.toml") << R"(name = "tiny"
[model]
kind = "lm"
d_model = 16
heads = 4
d_kv = 4
d_ff = 32
layers = 1
[data]
train = ["no/such/file.txt"]
format = "text"
vocabulary = "bytes"
[batch]
sequences = 4
length = 8
[optimizer]
name = "adam"
schedule = "constant 0.01"
[mesh]
mesh = "data:2"
layout = "batch:data heads,d_ff,vocab:model?"
[run]
steps = 10
)";
  }

  Ran weft(const std::string& line) const {
    return test::ran(str("cd ", folder_.string(), " && ", WEFT_COMMAND, " ", line, " 2>&1"));
  }

  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void expect_refused(const std::string& line, int code, const std::string& what, const std::string& fix) const {
    const Ran ran = weft(line);
    EXPECT_EQ(ran.code, code) << ran.output;
    EXPECT_THAT(ran.output, AllOf(HasSubstr("error: " + what), HasSubstr("fix:   " + fix))) << line;
  }

  fs::path folder_;
};

TEST_F(ExportStableHlo, WritesModuleAndManifest) {
  const Ran ran = weft("export --config tiny.toml --mesh 'data:2 model:4' --stablehlo step.mlir");
  ASSERT_EQ(ran.code, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("step.mlir: one step of tiny on 8 processors, 3 inputs, "));
  const std::string module = read("step.mlir");
  EXPECT_THAT(module, AllOf(HasSubstr("mhlo.num_partitions = 8 : i32"), HasSubstr("func.func public @main("),
                            HasSubstr("mhlo.sharding = \"{manual}\""), HasSubstr("stablehlo.all_reduce")));

  const nlohmann::json manifest = nlohmann::json::parse(read("step.mlir.json"));
  EXPECT_EQ(manifest["processors"], 8);
  EXPECT_EQ(manifest["mesh"], nlohmann::json::parse(R"([{"axis":"data","size":2},{"axis":"model","size":4}])"));
  const nlohmann::json& arguments = manifest["arguments"];
  EXPECT_EQ(arguments[0]["name"], "targets");
  EXPECT_EQ(arguments[0]["role"], "input");
  EXPECT_EQ(arguments[0]["dims"], nlohmann::json::parse(R"([{"name":"batch","size":4},{"name":"length","size":8}])"));
  EXPECT_EQ(arguments[0]["shard"], nlohmann::json::parse("[2, 8]"));
  EXPECT_EQ(arguments[0]["split"], nlohmann::json::parse(R"([["data"], []])"));
  EXPECT_EQ(arguments[arguments.size() - 2]["role"], "seed");
  EXPECT_EQ(arguments.back()["role"], "step");

  // Every variable is donated to the result of its name.
  std::size_t variables = 0, states = 0;
  for (const nlohmann::json& argument : arguments) {
    if (argument["role"] != "variable") continue;
    ++variables;
    states += argument["trainable"] == false;
    const nlohmann::json& result = manifest["results"].at(argument["donated_to"].get<std::size_t>());
    EXPECT_EQ(result["name"], argument["name"]);
    EXPECT_EQ(result["role"], "variable");
    EXPECT_EQ(result["shard"], argument["shard"]);
  }
  EXPECT_EQ(states, variables * 2 / 3);
  EXPECT_EQ(manifest["results"][0]["name"], "loss");
  EXPECT_EQ(manifest["results"][0]["role"], "output");
}

TEST_F(ExportStableHlo, SaysWhatIsMissing) {
  const std::string what = "export writes either the weights of a checkpoint or the step of a config",
                    fix = "write weft export CHECKPOINT --out FILE, or weft export --config my.toml --stablehlo FILE";
  for (const char* line : {"export", "export run", "export --out x", "export --config tiny.toml",
                           "export run --out x --config tiny.toml --stablehlo step.mlir"})
    expect_refused(line, 2, what, fix);
  expect_refused("export --stablehlo step.mlir", 2, "there is no config whose step could be written as StableHLO",
                 "name a config: weft export --config my.toml --stablehlo step.mlir");
  expect_refused("export --config tiny.toml --stablehlo no/folder/step.mlir", 3, "cannot write 'no/folder/step.mlir'",
                 "see that its folder exists, that you may write there and that the disk has room");
}

TEST_F(ExportStableHlo, NamesTheSettingOfALayoutThatCannotWork) {
  const Ran ran = weft("export --config tiny.toml --mesh 'data:3' --stablehlo step.mlir");
  EXPECT_EQ(ran.code, 2) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("batch"));
  EXPECT_FALSE(fs::exists(folder_ / "step.mlir"));
}

}  // namespace
}  // namespace weft::export_stablehlo_test
