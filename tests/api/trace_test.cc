// Executable::trace: every instruction of the chosen runs on every processor, with its cost; and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "support/expect_error.h"
#include "weft/detail/session_access.h"
#include "weft/explain.h"
#include "weft/ops.h"
#include "weft/session.h"

namespace weft::trace_test {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

const Machine kMachine = Machine::uniform(1e9, 1e9);
const Dim kBatch{"batch", 4}, kIn{"in", 8}, kOut{"out", 6};

// y = x w, and its mean: a product, a sum and, with the batch split, an all_reduce.
struct Small {
  Graph graph;
  Tensor x = graph.input("x", {kBatch, kIn});
  Tensor y = einsum({x, graph.variable("w", {kIn, kOut}, init::ones())}, {kBatch, kOut}).named("y");
  Tensor loss = mean(y).named("loss");
  Feeds feeds{{x, Array({kBatch, kIn}, DType::kF32)}};
};

std::vector<Json> events(const Json& trace, const std::string& use) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("args").at("use") == use) found.push_back(event);
  return found;
}

TEST(Trace, HasEveryInstructionOfTheChosenRuns) {
  Small s;
  Session session(Mesh::parse("data:2"), wire::threads(), device::reference());
  Executable step =
      session.compile(s.graph, Layout::parse("batch:data"), {.fetch = {s.loss}, .trace = {.first = 1, .steps = 2}});
  for (int i = 0; i < 5; ++i) step.run(s.feeds);
  const Json trace = Json::parse(step.trace(kMachine, "guessed"));
  EXPECT_EQ(trace["otherData"]["mesh"], "data:2");
  EXPECT_EQ(trace["otherData"]["peaks"], "guessed");
  EXPECT_EQ(trace["otherData"]["device"], "reference");

  const std::vector<Json> calls = events(trace, "call");
  ASSERT_EQ(calls.size(), 4u);  // two runs on two processors
  std::map<int, std::vector<Json>> products;
  for (const Json& event : events(trace, "kernel"))
    if (event["args"]["kind"] == "contract") products[event["pid"]].push_back(event);
  ASSERT_EQ(products.size(), 2u);
  for (const auto& [processor, both] : products) {
    ASSERT_EQ(both.size(), 2u);
    const Json& args = both[0]["args"];
    EXPECT_EQ(args["tensor"], "y");
    EXPECT_EQ(args["phase"], "forward");
    EXPECT_THAT(args["cause"].get<std::string>(), HasSubstr("trace_test.cc:"));
    EXPECT_EQ(args["flops"], 2 * 2 * 8 * 6);
    EXPECT_EQ(args["bytes"], 4 * (2 * 8 + 8 * 6 + 2 * 6));
    EXPECT_EQ(args["step"], 1);
    EXPECT_EQ(both[1]["args"]["step"], 2);
    EXPECT_NEAR(args["least_us"].get<double>(), 0.304, 1e-9);  // its bytes
    EXPECT_NEAR(args["roof"].get<double>() * args["seconds"].get<double>(), 0.304e-6, 1e-9);
    EXPECT_NEAR(both[0]["dur"].get<double>(), args["seconds"].get<double>() * 1e6, 1e-3);
  }
  EXPECT_EQ(events(trace, "collective").size(), 8u);  // an all_reduce starts and is done
}

// Instructions lie inside of their run, one after the other.
TEST(Trace, TimesAreInOrder) {
  Small s;
  Session session(Mesh(), wire::threads(), device::reference());
  Executable step = session.compile(s.graph, Layout(), {.fetch = {s.loss}, .trace = {.first = 0, .steps = 1}});
  step.run(s.feeds);
  const Json trace = Json::parse(step.trace(kMachine));
  EXPECT_EQ(trace["otherData"]["peaks"], "given");
  const Json call = events(trace, "call").at(0), program = events(trace, "program").at(0);
  const auto begin = [](const Json& e) { return e["ts"].get<double>(); };
  const auto end = [&](const Json& e) { return begin(e) + e["dur"].get<double>(); };
  EXPECT_LE(begin(call), begin(program));
  EXPECT_LE(end(program), end(call) + 1e-3);
  double last = begin(program);
  for (const Json& event : events(trace, "kernel")) {
    EXPECT_GE(begin(event), last - 1e-3);
    last = end(event);
  }
  EXPECT_LE(last, end(program) + 1e-3);
}

TEST(Trace, ShowsTheBodyOfALoopInsideOfIt) {
  Graph g;
  const Tensor x = g.input("x", {kIn});
  const Tensor y = loop(g, 3, {x}, [](const Tensor&, const Tensors& carried) {
                     return LoopStep{.carried = {tanh(carried[0])}, .sums = {}, .kept = {}, .stop = {}};
                   }).carried[0];
  Session session(Mesh(), wire::threads(), device::reference());
  Executable step = session.compile(g, Layout(), {.fetch = {y}, .trace = {.first = 0, .steps = 1}});
  step.run({{x, Array({kIn}, DType::kF32)}});
  const Json trace = Json::parse(step.trace(kMachine));
  EXPECT_EQ(events(trace, "loop").size(), 1u);
  int maps = 0;
  for (const Json& event : events(trace, "kernel")) maps += event["args"]["kind"] == "map";
  EXPECT_EQ(maps, 3);
}

TEST(Trace, RefusesWithoutARun) {
  Small s;
  Session session(Mesh(), wire::threads(), device::reference());
  Executable untraced = session.compile(s.graph, Layout(), {.fetch = {s.loss}});
  EXPECT_USER_ERROR(untraced.trace(kMachine), "no run of this executable has been traced",
                    "give CompileOptions::trace the number of steps");
  Executable late = session.compile(s.graph, Layout(), {.fetch = {s.loss}, .trace = {.first = 1, .steps = 1}});
  late.run(s.feeds);
  EXPECT_USER_ERROR(late.trace(kMachine), "no run of this executable has been traced",
                    "run it past the step that CompileOptions::trace begins with");
}

TEST(Session, KnowsItsPeakMemory) {
  const Session session{Mesh::parse("data:2")};
  EXPECT_GT(detail::peak_resident_bytes(session), 1 << 20);
}

}  // namespace
}  // namespace weft::trace_test
