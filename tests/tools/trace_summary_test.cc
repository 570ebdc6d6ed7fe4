// weft trace-summary on a stored trace: two processors of two workers, two steps of 10 ms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"

namespace weft::test::trace_summary_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::json;

const std::string kSmall = str(WEFT_TEST_DATA, "/tools/trace/small.json");

Ran summary(const std::string& arguments) { return ran(str(WEFT_COMMAND, " trace-summary ", arguments, " 2>&1")); }

TEST(TraceSummary, SaysWhereTheTimeGoes) {
  const Ran result = summary(kSmall);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.output,
            R"(mesh data:2, layout "batch:data", device cpu, 2 workers each; 2 steps, means of a step and processor
roof of a processor, measured: 100.0 GFLOP/s, 10.0 GB/s

  step                           10.000  100.0 %
  kernels                         6.500   65.0 %
    of it waiting for workers     1.000   10.0 %
  collectives                     1.000   10.0 %
  overhead                        2.500   25.0 %

  kind and phase       count     ms   share  of roof
  contract forward         1  4.000  40.0 %   50.0 %
  map forward              2  2.000  20.0 %   80.0 %
  all_reduce backward      2  1.000  10.0 %   40.0 %
  commit update            1  0.500   5.0 %        -

  slowest             count     ms   share  of roof  cause
  contract logits         1  4.000  40.0 %   50.0 %  lm.cc:7 einsum
  map h                   2  2.000  20.0 %   80.0 %  lm.cc:9 tanh
  all_reduce done dw      1  0.500   5.0 %        -  lm.cc:7 einsum
  all_reduce dw           1  0.500   5.0 %   80.0 %  lm.cc:7 einsum
  commit                  1  0.500   5.0 %        -
)");
}

TEST(TraceSummary, SaysItAsJson) {
  const Json json = Json::parse(summary(kSmall + " --json --most 1").output);
  EXPECT_NEAR(json["ms"]["step"].get<double>(), 10, 1e-9);
  EXPECT_NEAR(json["overhead"].get<double>(), 0.25, 1e-9);
  EXPECT_NEAR(json["kinds"][0]["roof"].get<double>(), 0.5, 1e-9);
  EXPECT_EQ(json["slowest"].size(), 1u);
  EXPECT_EQ(json["slowest"][0]["what"], "contract logits");
}

TEST(TraceSummary, ReadsWhatBenchWrites) {
  const std::string file = (std::filesystem::path(testing::TempDir()) / "weft_bench_lm_trace.json").string();
  const Ran bench =
      ran(str(WEFT_COMMAND, " bench lm --config tiny --steps 2 --warmup 1 --mesh all:2 --layout batch:all ",
              "--machine h200x8 --trace ", file, " --json 2>&1"));
  ASSERT_EQ(bench.code, 0) << bench.output;
  const Json json = Json::parse(summary(file + " --json").output);
  std::filesystem::remove(file);
  EXPECT_EQ(json["processors"], 2);
  EXPECT_EQ(json["steps"], 2);
  EXPECT_EQ(json["peaks"], "given");
  std::map<std::string, double> ms = json["ms"];
  EXPECT_GT(ms["kernels"], 0);
  EXPECT_GT(ms["collectives"], 0);
  EXPECT_GE(ms["overhead"], 0);
  EXPECT_NEAR(ms["step"], ms["kernels"] + ms["collectives"] + ms["overhead"], 1e-9 * ms["step"]);
  EXPECT_GT(Json::parse(bench.output)["ms_per_step"].get<double>(), 0);
  EXPECT_EQ(ran(str(WEFT_COMMAND, " bench lm --config tiny --trace /nowhere/t.json 2>&1")).code, 3);
}

void expect_refused(const std::string& file, const std::string& content, const std::string& what) {
  SCOPED_TRACE(content);
  const std::string path = (std::filesystem::path(testing::TempDir()) / file).string();
  std::ofstream(path) << content;
  const Ran result = summary(path);
  std::filesystem::remove(path);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.output, AllOf(StartsWith(str("error: '", path, "' is no trace of Weft: ", what)),
                                   HasSubstr("\nfix:   give a file that `weft bench lm --trace FILE` wrote, whole\n")));
}

TEST(TraceSummary, RefusesWhatIsNoTrace) {
  const Ran absent = summary("/nowhere/t.json");
  EXPECT_EQ(absent.code, 2);
  EXPECT_EQ(absent.output,
            "error: the trace '/nowhere/t.json' cannot be read\nwhere: /nowhere/t.json\n"
            "fix:   give the path of a file that `weft bench lm --trace FILE` wrote\n"
            "code:  trace.unreadable-file\n");
  expect_refused("t1.json", "", "it is not JSON");
  expect_refused("t2.json", "{\"traceEvents\":[", "it is not JSON");
  expect_refused("t3.json", "[1, 2]", "nothing in it says so");
  expect_refused("t4.json", "{\"otherData\": 3}", "nothing in it says so");
  expect_refused("t5.json", "{\"otherData\": {\"weft_trace\": 2}}", "its form is another than 1");
  expect_refused("t6.json", "{\"otherData\": {\"weft_trace\": 1}}", "");
  const std::string about =
      R"({"weft_trace":1,"mesh":"","layout":"","device":"cpu","processors":1,"workers":1,"flops_per_second":1,)"
      R"("bytes_per_second":1,"peaks":"given"})";
  expect_refused("t7.json", str("{\"otherData\":", about, ",\"traceEvents\":[]}"), "it has no step");
  expect_refused("t8.json", str("{\"otherData\":", about, ",\"traceEvents\":[{\"ph\":\"X\"}]}"), "");
  expect_refused("t9.json", str("{\"otherData\":", about, ",\"traceEvents\":7}"), "");
}

}  // namespace
}  // namespace weft::test::trace_summary_test
