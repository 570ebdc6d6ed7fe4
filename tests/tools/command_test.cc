// The weft command as a user meets it: what it prints, where, and its exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace weft::command_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using Json = nlohmann::json;

struct Ran {
  int code = -1;
  std::string out, err;
};

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `weft <arguments>` through the shell.
Ran weft(const std::string& arguments) {
  const std::filesystem::path base =
      std::filesystem::path(testing::TempDir()) / ("weft_command_" + std::to_string(getpid()));
  const std::string out = base.string() + ".out", err = base.string() + ".err";
  const int status = std::system((std::string(WEFT_COMMAND) + " " + arguments + " >" + out + " 2>" + err).c_str());
  Ran ran{.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1, .out = content(out), .err = content(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return ran;
}

// Nothing on standard output, four lines on standard error, exit code 2.
void expect_refused(const std::string& arguments, const std::string& what, const std::string& fix) {
  SCOPED_TRACE(arguments);
  const Ran ran = weft(arguments);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, AllOf(StartsWith("error: "), HasSubstr(what), HasSubstr("\nwhere: "), HasSubstr("\nfix:   "),
                             HasSubstr(fix), HasSubstr("\ncode:  ")));
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 4);
}

TEST(Command, HelpsEverywhere) {
  for (const char* path :
       {"", "train", "eval", "generate", "translate", "explain", "run", "bench", "bench collectives", "bench lm",
        "trace-summary", "vocab", "vocab train", "vocab encode", "vocab decode", "export", "import", "doctor"}) {
    const Ran ran = weft(std::string(path) + " --help");
    EXPECT_EQ(ran.code, 0) << path;
    EXPECT_THAT(ran.out, HasSubstr("Usage: weft " + std::string(path))) << path;
    EXPECT_THAT(ran.err, IsEmpty());
  }
  EXPECT_THAT(weft("explain --help").out, AllOf(HasSubstr("--layout"), HasSubstr("two_layer"), HasSubstr("d_ff=1024")));
}

TEST(Command, TellsItsVersion) {
  const Ran ran = weft("--version");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, testing::MatchesRegex("weft [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(Command, ExplainsAsJson) {
  const Ran ran = weft(
      "explain two_layer --mesh 'rows:16 cols:32' --layout 'batch:rows hidden:cols' "
      "--set batch=512,io=1024 --set hidden=4096 --machine tpuv2-512 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  const Json json = Json::parse(ran.out);
  const std::int64_t product = 2LL * 512 * 1024 * 4096 / 512;
  EXPECT_EQ(json["flops"]["contract"]["forward"].get<std::int64_t>(), 2 * product);
  EXPECT_EQ(json["flops"]["contract"]["backward"].get<std::int64_t>(), 4 * product);
  std::int64_t elements = 0;
  for (const Json& c : json["collectives"]) elements += c["elements"].get<std::int64_t>();
  EXPECT_EQ(elements, 2 * 512 * 1024 / 16 + 2 * 1024 * 4096 / 32);
  EXPECT_EQ(json["machine"]["flops_per_second"], 2.29e13);
}

TEST(Command, ExplainsInWords) {
  const Ran ran = weft("explain mlp --show layer_1/w");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("mesh data:2 model:2, layout \"batch:data hidden:model\""),
                    HasSubstr("src/models/mlp.cc:"), HasSubstr("variable layer_1/w f32"), HasSubstr("Warnings\n")));
}

Json costs(const std::string& arguments) {
  const Ran ran = weft(arguments + " --json");
  EXPECT_EQ(ran.code, 0) << ran.err;
  Json json = Json::parse(ran.out);
  for (const char* measured : {"compile_s", "passes", "machine", "work_ratio", "kernels"}) json.erase(measured);
  return json;
}

// The paper's models are known by name: one text serves the name, the file and weft train.
TEST(Command, ExplainsConfigsAsTrainPlansThem) {
  const std::string file = std::string(WEFT_TEST_DATA) + "/../configs/paper/lm-4.9b.toml";
  const Json named = costs("explain paper/lm-4.9b");
  EXPECT_EQ(named, costs("explain " + file));
  EXPECT_EQ(named, costs("train " + file + " --dry-run"));
  EXPECT_EQ(named["processors"], 512);
  EXPECT_EQ(named["parameters"]["total"].get<std::int64_t>(), 4899235840);
  const std::string small =
      " --set model.d_ff=512,model.heads=8,model.layers=1 --mesh 'batch:2 model:2' --store '*:batch'";
  const Json set = costs("explain paper/lm-4.9b" + small);
  EXPECT_EQ(set["mesh"], "batch:2 model:2");
  EXPECT_EQ(set["store"]["layout"], "*:batch");
  EXPECT_EQ(set, costs("train " + file + " --dry-run" + small));
  EXPECT_LT(set["parameters"]["total"].get<std::int64_t>(), 100'000'000);
  const std::string layout = std::string(WEFT_TEST_DATA) + "/../configs/layouts/single.toml";
  EXPECT_EQ(costs("explain paper/lm-4.9b " + layout + " --set model.d_ff=8,model.heads=1")["processors"], 1);
  EXPECT_EQ(weft("bench compile --config paper/lm-0.14b --repeats 1").code, 0);
}

// The model's own layout speaks of its own mesh: another mesh begins with none.
TEST(Command, AnotherMeshBeginsWithoutALayout) {
  const Json json = Json::parse(weft("explain two_layer --mesh all:8 --json").out);
  EXPECT_EQ(json["layout"], "");
  EXPECT_FALSE(json["warnings"].empty());
}

TEST(Command, DumpsPasses) {
  const Ran one = weft("explain two_layer --dump partition");
  EXPECT_THAT(one.out, StartsWith("after partition:\nweft program 1\n"));
  const Ran all = weft("explain two_layer --json --dump all");
  EXPECT_TRUE(Json::accept(all.out));
  EXPECT_THAT(all.err, AllOf(HasSubstr("after partition:"), HasSubstr("after drop_dead_code:")));
}

TEST(Command, RefusesWrongLines) {
  expect_refused("", "'weft' needs a command",
                 "give one of: train, eval, generate, translate, explain, plan, simulate, calibrate, run, bench, "
                 "trace-summary, vocab, export, import, "
                 "doctor");
  expect_refused("explian", "'weft' has no command 'explian'", "did you mean 'explain'?");
  expect_refused("explain", "MODEL is required", "see weft explain --help");
  expect_refused("explain two_layer --layot x", "'weft explain' has no option '--layot'", "did you mean '--layout'?");
  expect_refused("explain two_layer extra", "'extra' follows the built-in model 'two_layer'",
                 "leave it out; only configs, .toml files, may follow each other");
  expect_refused("explain two_layer --mesh", "--mesh", "see weft explain --help");
  expect_refused("explain two_layer --json=3", "json was given a disallowed flag override", "--help");
  expect_refused("bench", "'weft bench' needs a command", "give one of: lm, decode, compile, collectives");
  expect_refused("bench collectivs", "'weft bench' has no command 'collectivs'", "did you mean 'collectives'?");
  expect_refused("bench collectives --repeats x", "--repeats", "see weft bench collectives --help");
}

TEST(Command, RefusesWrongModelsMeshesAndLayouts) {
  expect_refused("explain two_later", "there is no built-in model 'two_later'", "did you mean 'two_layer'?");
  expect_refused("explain paper/lm-4.9b --set layers=3", "there is no setting 'layers'", "model.layers");
  expect_refused("explain nowhere.toml", "cannot read the config 'nowhere.toml'", "give the path of a .toml file");
  expect_refused("explain lm-demo", "there is no built-in model 'lm-demo'",
                 "; a config is a .toml file, as configs/lm-demo.toml");
  expect_refused("explain two_layer --set bath=4", "model 'two_layer' has no size 'bath' to set",
                 "did you mean 'batch'?");
  expect_refused("explain two_layer --set batch", "'batch' does not set a size", "write dim=size");
  expect_refused("explain two_layer --mesh rows", "rows", "");
  expect_refused("explain two_layer --layout btch:rows", "btch", "did you mean 'batch'?");
  expect_refused("explain two_layer --layout batch:row", "row", "did you mean 'rows'?");
  expect_refused("explain two_layer --set batch=3", "batch", "");
  expect_refused("explain two_layer --layout 'batch,io:rows'", "batch", "");
  expect_refused("explain two_layer --dump fuze", "the compiler has no pass 'fuze'", "there are: all, partition, ");
  expect_refused("explain two_layer --machine h200", "there is no machine 'h200'", "did you mean");
  expect_refused("explain two_layer --show nix_da", "the program has no tensor 'nix_da' to show", "");
}

TEST(Command, MeasuresCollectives) {
  const Ran ran =
      weft("bench collectives --kinds all_reduce,all_gather --processors 2 --bytes 4KiB,64 --repeats 1 --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  ASSERT_EQ(json.size(), 4u);
  EXPECT_EQ(json[0]["bytes"], 4096);
  EXPECT_EQ(json[3]["collective"], "all_gather");
  EXPECT_THAT(weft("bench collectives --kinds permute --bytes 8 --repeats 1").out, HasSubstr("permute"));
  expect_refused("bench collectives --bytes 1XB", "'1XB' is no number of bytes", "16MiB");
  expect_refused("bench collectives --processors 2,x", "'x' is not a whole number", "like 2,8");
  expect_refused("bench collectives --kinds all", "there is no collective 'all'", "the kinds are: ");
}

TEST(Command, DoctorLooksAround) {
  const Ran ran = weft("doctor");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out,
              AllOf(StartsWith("weft "), HasSubstr("\nwires "), HasSubstr("affinity mask"), HasSubstr("\nsimd ")));
  const Json json = Json::parse(weft("doctor --json").out);
  EXPECT_EQ(json["devices"], "cpu, reference, cuda, xla");
}

TEST(Command, SaysWhenItsOutputIsLost) {
  const std::string base = std::string(WEFT_COMMAND) + " explain two_layer ";
  const std::string err = testing::TempDir() + "weft_lost_" + std::to_string(getpid());
  const int status = std::system((base + ">/dev/full 2>" + err).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_THAT(content(err), AllOf(HasSubstr("error: what the command prints cannot be written"),
                                  HasSubstr("where: standard output"), HasSubstr("its disk has room")));
  std::filesystem::remove(err);
}

}  // namespace
}  // namespace weft::command_test
