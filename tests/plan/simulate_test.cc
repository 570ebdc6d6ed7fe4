// weft simulate and weft explain --machine, as commands; the predicted memory.
#include "weft/simulate.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/str.h"
#include "support/command.h"
#include "support/expect_error.h"
#include "weft/detail/models.h"
#include "weft/explain.h"

namespace weft {
namespace {

using Json = nlohmann::json;
using test::ran;

test::Ran weft(const std::string& words) { return ran(str(WEFT_COMMAND, " ", words)); }

TEST(Simulate, PlansTheMemoryThatARunAllocates) {
  const models::Model model = models::build("lm/tiny");
  for (const int level : {0, 1, 2, 3}) {
    const Store store = level == 0 ? Store() : Store::parse("*:data", level);
    Session session(Mesh::parse("data:2"), wire::threads(), device::cpu(), {.store = store});
    const Executable step = session.compile(model.graph, Layout::parse("batch:data"), model.options);
    const Simulation s = simulate(step.text(), Machine::load("cpu-cluster"));
    EXPECT_EQ(s.variable_bytes, step.memory().variables) << level;
    EXPECT_EQ(s.arena_bytes, step.memory().arena) << level;
    std::int64_t most = 0;
    for (const Simulation::MemoryPoint& point : s.memory) most = std::max(most, point.bytes);
    EXPECT_GT(most, 0);
    EXPECT_LE(most, s.arena_bytes);
    EXPECT_GE(s.seconds, s.compute_seconds);
  }
}

TEST(SimulateCommand, PrintsAStepForPeople) {
  const test::Ran out = weft("simulate two_layer --machine h200x8 2>&1");
  EXPECT_EQ(out.code, 0) << out.output;
  for (const char* part : {"predicted on h200x8", "collectives", "memory", "contract forward"})
    EXPECT_EQ(out.count(part) > 0, true) << part << out.output;
}

TEST(SimulateCommand, PrintsJson) {
  const test::Ran out = weft("simulate lm/tiny --mesh data:4 --layout batch:data --machine h200x8 --json");
  const Json all = Json::parse(out.output);
  EXPECT_GT(all.at("seconds").get<double>(), 0);
  EXPECT_GT(all.at("wire_seconds").get<double>(), 0);
  EXPECT_LE(all.at("exposed_seconds").get<double>(), all.at("wire_seconds").get<double>() + 1e-12);
  EXPECT_GT(all.at("utilization").get<double>(), 0);
  EXPECT_FALSE(all.at("memory").empty());
}

TEST(SimulateCommand, PlansThePapersModelsWithoutTheirData) {
  const test::Ran out = weft("simulate paper/lm-0.14b --machine tpuv2-512 --json 2>&1");
  EXPECT_EQ(out.code, 0) << out.output;
}

TEST(SimulateCommand, WritesATraceThatTheSummaryReads) {
  const std::string path = testing::TempDir() + "weft_simulated.json";
  EXPECT_EQ(weft(str("simulate lm/tiny --mesh data:4 --layout batch:data --machine h200x8 --trace ", path)).code, 0);
  const test::Ran summary = weft(str("trace-summary ", path, " --json 2>&1"));
  EXPECT_EQ(summary.code, 0) << summary.output;
  EXPECT_GT(summary.count("all_reduce"), 0u);
  std::remove(path.c_str());
  const test::Ran unwritable = weft("simulate lm/tiny --machine h200x8 --trace /no/such/folder/t.json 2>&1");
  EXPECT_EQ(unwritable.code, 3);
  EXPECT_EQ(unwritable.count("cannot write the trace to '/no/such/folder/t.json'"), 1u) << unwritable.output;
}

TEST(SimulateCommand, RefusesUnknownMachinesAndLargeMeshes) {
  const test::Ran unknown = weft("simulate two_layer --machine h300 2>&1");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.count("there is no machine 'h300'"), 1u) << unknown.output;
  const test::Ran large = weft("simulate two_layer --mesh all:16 --machine h200x8 2>&1");
  EXPECT_EQ(large.code, 2);
  EXPECT_EQ(large.count("the mesh has 16 processors, but the machine has 8"), 1u) << large.output;
}

TEST(ExplainCommand, PredictsAStepOnAMachine) {
  const Json all = Json::parse(weft("explain two_layer --machine h200x8 --json").output);
  EXPECT_GT(all.at("predicted").at("seconds").get<double>(), 0);
  EXPECT_GT(weft("explain two_layer --machine h200x8").count("predicted on h200x8"), 0u);
}

TEST(CalibrateCommand, RefusesAFileThatItCannotWrite) {
  const test::Ran out = weft("calibrate --out /no/such/folder/here.toml 2>&1");
  EXPECT_EQ(out.code, 3);
  EXPECT_EQ(out.count("cannot write the description to '/no/such/folder/here.toml'"), 1u) << out.output;
}

TEST(CalibrateCommand, RefusesDevicesWithoutInstructions) {
  const test::Ran out = weft("calibrate --out here.toml --device xla 2>&1");
  EXPECT_EQ(out.code, 2);
  EXPECT_EQ(out.count("the device 'xla' compiles whole programs, so its instructions cannot be timed"), 1u) << out.output;
  EXPECT_EQ(out.count("calibrate the device cpu or cuda"), 1u);
}

}  // namespace
}  // namespace weft
