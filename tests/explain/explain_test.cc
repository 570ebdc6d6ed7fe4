// What explain says beside the cost table: phases, warnings, text, errors.
#include "weft/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "weft/detail/models.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::explain_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const Machine kMachine = Machine::uniform(1e11, 1e10);

Explanation of(const std::string& name, const std::string& mesh, const std::string& layout,
               const models::Sizes& sizes = {}) {
  const models::Model model = models::build(name, sizes);
  return explain(model.graph, Mesh::parse(mesh), Layout::parse(layout), model.options, kMachine);
}

std::vector<std::string> kinds(const Explanation& e) {
  std::vector<std::string> all;
  for (const Explanation::Warning& w : e.warnings) all.push_back(w.kind);
  return all;
}

TEST(Explain, JsonHasTheKeysOfTheDocs) {
  const Json json = Json::parse(of("two_layer", "rows:2 cols:2", "batch:rows hidden:cols").json());
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, testing::UnorderedElementsAre("mesh", "layout", "processors", "parameters", "flops", "collectives",
                                                  "work_ratio", "machine", "variable_bytes", "variables", "store",
                                                  "arena_bytes", "live_bytes", "workspace_bytes", "scratch_bytes",
                                                  "kernels", "warnings", "instructions", "compile_s", "passes"));
  EXPECT_EQ(json["mesh"], "rows:2 cols:2");
  EXPECT_EQ(json["layout"], "batch:rows hidden:cols");
  EXPECT_EQ(json["processors"], 4);
  EXPECT_TRUE(json["flops"]["executed"].is_number_integer());
  EXPECT_GT(json["compile_s"].get<double>(), 0);
  EXPECT_EQ(json["passes"][0]["pass"], "partition");
  for (const Json& c : json["collectives"])
    for (const char* key : {"kind", "axes", "elements", "bytes", "dtype", "count", "phase", "cause"})
      EXPECT_TRUE(c.contains(key)) << key;
}

// A kernel that the device lacks is served by the reference, which the explanation says; a large share is warned of.
TEST(Explain, KernelsOfOtherEnginesAreListedAndWarnedOf) {
  Graph g;
  const Dim a{"a", 64}, b{"b", 64}, c{"c", 64};
  const Tensor x = g.input("x", {a, b}), y = g.input("y", {b, c});
  const auto explained = [&](const Tensor& z, const CompileOptions& options) {
    CompileOptions all = options;
    all.fetch = {z};
    return explain(g, Mesh(), Layout(), all, kMachine);
  };
  const auto served = [](const Explanation& e, const std::string& instruction) {
    std::vector<std::string> by;
    for (const Explanation::Kernel& kernel : e.kernels)
      if (kernel.instruction == instruction) by.push_back(kernel.served_by);
    return by;
  };
  const Tensor z = einsum({x, y}, {a, c});
  const Explanation fast = explained(z, {}), wide = explained(z, {.compute_as = DType::kF64});
  EXPECT_THAT(served(fast, "contract"), testing::ElementsAre("cpu"));
  EXPECT_THAT(kinds(fast), testing::IsEmpty());
  EXPECT_THAT(served(wide, "contract"), testing::ElementsAre("reference"));
  ASSERT_THAT(kinds(wide), testing::ElementsAre("slow kernel"));
  EXPECT_THAT(wide.warnings[0].text, testing::HasSubstr("device 'cpu' has no fast kernel for 1 instructions contract"));
  EXPECT_THAT(wide.summary(), testing::HasSubstr("contract  1  reference"));
}

// The sum of a loss is forward, of a gradient backward; the update of a split variable talks to no one.
TEST(Explain, CollectivesCarryPhaseAndLine) {
  const Explanation e = of("mlp", "data:2 model:2", "batch:data hidden:model");
  std::map<std::string, int> counts;
  for (const Explanation::Collective& c : e.collectives) {
    counts[c.phase] += c.count;
    for (const std::string& cause : c.cause)
      EXPECT_THAT(cause, testing::MatchesRegex("src/models/mlp.cc:[0-9]+ [a-z_]+"));
  }
  EXPECT_GT(counts["forward"], 0);
  EXPECT_GT(counts["backward"], 0);
  EXPECT_EQ(counts["update"], 0);
}

TEST(Explain, WarnsOfReplicatedWork) {
  const Explanation e = of("two_layer", "rows:2 cols:4", "batch:rows");
  ASSERT_GE(e.warnings.size(), 2u);
  const Explanation::Warning& w = e.warnings[1];  // the first one is of the axis as a whole
  EXPECT_EQ(w.kind, "replicated work");
  EXPECT_THAT(w.axes, ElementsAre("cols"));
  EXPECT_GT(w.share, 0.3);
  EXPECT_THAT(w.cause, ElementsAre(HasSubstr("two_layer.cc:")));
  EXPECT_THAT(w.text, HasSubstr("of the flops are done alike by all 4 processors along cols"));
  EXPECT_THAT(w.text, HasSubstr("hidden"));  // a dim that could lie there
}

TEST(Explain, WarnsOfAnAxisThatSplitsNothing) {
  const Explanation e = of("two_layer", "rows:2 cols:4", "batch:rows");
  ASSERT_FALSE(e.warnings.empty());
  EXPECT_EQ(e.warnings[0].kind, "idle axis");
  EXPECT_THAT(e.warnings[0].axes, ElementsAre("cols"));
  EXPECT_EQ(e.warnings[0].share, 1);
  EXPECT_EQ(e.warnings[0].text,
            "axis 'cols' splits nothing: the 4 processors along it do the same work; lay a dim on it, or leave it "
            "out of the mesh");
  for (const char* layout : {"batch:rows hidden:cols", "batch:rows+cols", "batch:rows io:cols"})
    EXPECT_THAT(kinds(of("two_layer", "rows:2 cols:4", layout)), Not(testing::Contains("idle axis"))) << layout;
}

// An executable says it in its report too, without a call of explain().
TEST(Explain, AnExecutableHasItsWarnings) {
  const models::Model model = models::build("two_layer", {});
  Session session(Mesh::parse("rows:1 cols:2"));
  const Executable idle = session.compile(model.graph, Layout::parse("batch:rows"), model.options);
  EXPECT_THAT(idle.warnings(), ElementsAre(HasSubstr("axis 'cols' splits nothing: the 2 processors along it")));
  EXPECT_THAT(idle.report(), HasSubstr("\n  warning: axis 'cols' splits nothing"));
  Session other(Mesh::parse("rows:1 cols:2"));
  const Executable busy = other.compile(model.graph, Layout::parse("batch:cols"), model.options);
  EXPECT_THAT(busy.warnings(), ElementsAre());
  EXPECT_THAT(busy.report(), Not(HasSubstr("warning")));
}

TEST(Explain, WarnsOfNoWorkThatIsShared) {
  EXPECT_THAT(kinds(of("two_layer", "rows:2 cols:4", "batch:rows hidden:cols")),
              Not(testing::Contains("replicated work")));
  EXPECT_THAT(kinds(of("two_layer", "", "")), ElementsAre());
  EXPECT_THAT(kinds(of("two_layer", "all:1", "")), ElementsAre());  // an axis of one processor repeats nothing
}

// 4 MiB each of w and v: big, and held by every row.
TEST(Explain, WarnsOfBigReplicatedTensors) {
  const Explanation e = of("two_layer", "rows:2 cols:2", "batch:rows hidden:cols", {{"io", 1024}, {"hidden", 2048}});
  ASSERT_THAT(kinds(e), ElementsAre("replicated tensors"));
  EXPECT_THAT(e.warnings[0].axes, ElementsAre("rows"));
  EXPECT_THAT(e.warnings[0].cause, testing::IsSupersetOf({"w", "v"}));
  EXPECT_EQ(e.warnings[0].share, 1);
  EXPECT_THAT(e.warnings[0].text, HasSubstr("all 2 processors along rows hold the same of w (4 MiB), v (4 MiB)"));
}

TEST(Explain, TextHasProgramCountsPicturesAndWarnings) {
  const std::string text = of("two_layer", "rows:2 cols:2", "batch:rows hidden:cols").text();
  EXPECT_THAT(text, HasSubstr("mesh rows:2 cols:2, layout \"batch:rows hidden:cols\": 4 processors"));
  EXPECT_THAT(text, HasSubstr("contract %0.x, %2.w  @forward \"src/models/two_layer.cc:"));
  EXPECT_THAT(text, HasSubstr("forward 16.8 M, backward 33.6 M"));
  EXPECT_THAT(text, HasSubstr("parameters             262 k of 524 k"));
  EXPECT_THAT(text, HasSubstr("all_reduce  rows  backward  f32        1    262144   1 MiB"));
  EXPECT_THAT(text, HasSubstr("variable w f32 [io=256 hidden=1024]: each processor holds [io=256 hidden=512]"));
  EXPECT_THAT(text, HasSubstr("Warnings\n  none"));
  std::size_t last = 0;  // the summary comes first, the program last
  for (const char* title :
       {"mesh ", "\nOn each processor", "\nCollectives", "\nWarnings", "\nHow shards", "\nThe program"}) {
    EXPECT_GE(text.find(title), last) << title;
    last = text.find(title);
  }
  EXPECT_THAT(of("two_layer", "", "").text(), HasSubstr("none: no processor talks to another"));
}

TEST(Explain, ShowsTheTensorsThatAreNamed) {
  const Explanation e = of("two_layer", "rows:2 cols:2", "batch:rows hidden:cols");
  const std::string text = e.text({"relu"});
  EXPECT_THAT(text, HasSubstr("value relu f32 [batch=64 hidden=1024]: each processor holds [batch=32 hidden=512]"));
  EXPECT_THAT(text, Not(HasSubstr("variable w f32")));
  EXPECT_USER_ERROR(e.text({"rleu"}), "the program has no tensor 'rleu' to show", "did you mean 'relu'?");
  EXPECT_USER_ERROR(e.text({"nothing_like_it"}), "give a name that the program's text has");
}

// A per-tensor layout names axes: the one-processor program of the work ratio must know them too.
TEST(Explain, TakesLayoutsOfSingleTensors) {
  const Dim a{"a", 8}, b{"b", 4};
  Graph g;
  const Tensor x = g.input("x", {a, b});
  const Tensor y = with_layout(x, "a:-, b:all") * 2.0;
  const Explanation e = explain(g, Mesh::parse("all:2"), Layout::parse("a:all"), {.fetch = {y}}, kMachine);
  ASSERT_FALSE(e.collectives.empty());
  EXPECT_THAT(e.collectives[0].cause, ElementsAre(HasSubstr("explain_test.cc:")));
}

TEST(Explain, ProgramDoesNotGrowWithTheMesh) {
  const models::Sizes sizes = {{"batch", 32}, {"heads", 32}, {"d_ff", 2048}};
  const std::string layout = "batch:data heads,d_ff,vocab:model";
  EXPECT_EQ(of("transformer", "data:2 model:2", layout, sizes).instructions,
            of("transformer", "data:16 model:32", layout, sizes).instructions);
}

TEST(Explain, DumpsThePassesOfOneCompilation) {
  models::Model model = models::build("two_layer");
  std::vector<std::string> passes;
  model.options.dump = [&](std::string_view pass, const std::string&) { passes.emplace_back(pass); };
  const Explanation e = explain(model.graph, model.mesh, model.layout, model.options, kMachine);
  std::vector<std::string> want;
  for (const Explanation::Pass& pass : e.passes) want.push_back(pass.name);
  ASSERT_EQ(want.back(), "memory plan");  // which changes no program
  want.pop_back();
  EXPECT_EQ(passes, want);
}

TEST(ExplainMachine, NeedsRates) {
  const models::Model model = models::build("two_layer");
  EXPECT_USER_ERROR(explain(model.graph, model.mesh, model.layout, model.options, Machine{}),
                    "a machine cannot have 0 flops and 0 bytes per second", "measure_machine()");
}

TEST(ExplainMachine, IsMeasuredInABlink) {
  const Machine m = measure_machine();
  EXPECT_GT(m.peak(), 1e8);
  EXPECT_LT(m.peak(), 1e13);
  EXPECT_GT(m.bytes_per_second, 1e7);
  EXPECT_LT(m.bytes_per_second, 1e13);
}

TEST(ExplainReport, SaysWhatAStepCosts) {
  const models::Model model = models::build("two_layer", {{"batch", 8}, {"io", 4}, {"hidden", 16}});
  Session session(model.mesh);
  const std::string report = session.compile(model.graph, model.layout, model.options).report();
  EXPECT_THAT(report, HasSubstr("mesh rows:2 cols:2, layout \"batch:rows hidden:cols\""));
  EXPECT_THAT(report, HasSubstr("on each processor, in one step"));
  EXPECT_THAT(report, HasSubstr("variables  256 B"));
  EXPECT_THAT(report, HasSubstr("all_reduce  rows  backward  f32        1        64  256 B"));
}

}  // namespace
}  // namespace weft::explain_test
