// The engine's paths on the fake plugin: buffers, donation, live objects, memory statistics.
#include "runtime/engine.h"
#include "support/processes.h"
#include "weft/explain.h"
#include "xla/fake.h"

namespace weft::xla_test {
namespace {

class XlaSession : public FakeTest {};

std::vector<float> floats(const Array& array) {
  const auto span = array.span<float>();
  return {span.begin(), span.end()};
}

TEST_F(XlaSession, KeepsVariablesOnTheDevicesAndTakesTheirNewContents) {
  SmallStep step;
  Session session(Mesh::parse("a:2 b:2"), wire::threads(), device());
  Executable executable = step.compile(session, "width:b");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(executable.run(step.feeds()).scalar(step.loss), 0);
  EXPECT_EQ(executions(), 3);
  EXPECT_EQ(floats(session.value("w")), std::vector<float>(8, 4));  // the plugin adds one in every step
  EXPECT_EQ(floats(session.value("still")), std::vector<float>(8, 2));
  session.set_value("w", Array({step.width}, DType::kF32));
  executable.run(step.feeds());
  EXPECT_EQ(floats(session.value("w")), std::vector<float>(8, 1));
}

TEST_F(XlaSession, SharesVariablesBetweenExecutables) {
  SmallStep step;
  Session session(Mesh::parse("a:2"), wire::threads(), device());
  Executable train = step.compile(session);
  Executable eval = session.compile(step.graph, Layout(), {.fetch = {step.loss}});
  train.run(step.feeds());
  eval.run(step.feeds());
  train.run(step.feeds());
  EXPECT_EQ(floats(session.value("w")), std::vector<float>(8, 3));
}

TEST_F(XlaSession, ReadsAStepAfterTheNextHasStarted) {
  SmallStep step;
  Session session(Mesh::parse("a:2"), wire::threads(), device());
  Executable executable = step.compile(session);
  PendingRun first = executable.start(step.feeds());
  PendingRun second = executable.start(step.feeds());
  EXPECT_EQ(first.get().scalar(step.loss), 0);
  EXPECT_EQ(second.get().scalar(step.loss), 0);
}

TEST_F(XlaSession, LeavesNoObjectBehindInTenThousandSteps) {
  {
    SmallStep step;
    Session session(Mesh::parse("a:2"), wire::threads(), device());
    Executable executable = step.compile(session);
    for (int i = 0; i < 10; ++i) executable.run(step.feeds());
    const long before = live();
    EXPECT_GT(before, 0);
    for (int i = 0; i < 10'000; ++i) executable.run(step.feeds());
    EXPECT_EQ(live(), before);
  }
  EXPECT_EQ(live(), 0);
}

TEST_F(XlaSession, ReportsTheCompilersMemoryInPlaceOfThePlan) {
  SmallStep step;
  const CompileOptions options = step.options();
  Session session(Mesh(), wire::threads(), device());
  const Executable executable = session.compile(step.graph, Layout(), options);
  // Arguments: x, w, still, 8 bytes of seed and 4 of step. Outputs: loss and w. The plugin says 3072 + 1024 besides.
  const std::int64_t arena = 32 + 8 + 4 + 4 + 3072 + 1024;
  EXPECT_EQ(executable.memory().variables, 64);
  EXPECT_EQ(executable.memory().arena, arena);
  const Explanation e = explain(step.graph, Mesh(), Layout(), options, Machine::uniform(1e9, 1e9), {}, device());
  ASSERT_TRUE(e.compiler.has_value());
  EXPECT_EQ(e.compiler->arguments, 3 * 32 + 12);
  EXPECT_EQ(e.compiler->outputs, 36);
  EXPECT_EQ(e.compiler->aliased, 32);
  EXPECT_EQ(e.arena_bytes, arena);
  EXPECT_NE(e.summary().find("as fake.so reports it, in place of Weft's memory plan"), std::string::npos)
      << e.summary();
  EXPECT_NE(e.json().find("\"temporary_bytes\": 3072"), std::string::npos);
}

TEST_F(XlaSession, UsesThePluginOfTheEnvironment) {
  setenv("WEFT_PLUGIN", plugin.c_str(), 1);
  SmallStep step;
  Session session(Mesh(), wire::threads(), device::xla());
  EXPECT_EQ(step.compile(session).run(step.feeds()).scalar(step.loss), 0);
}

TEST_F(XlaSession, RefusesWhatXlaCannotGive) {
  SmallStep step;
  const auto compile = [&](CompileOptions options) {
    Session session(Mesh::parse("a:2"), wire::threads(), device());
    options.fetch = {step.loss};
    session.compile(step.graph, Layout(), options);
  };
  EXPECT_USER_ERROR(compile({.check_finite = true}),
                    "the device 'xla' cannot search for NaN or infinity: XLA shows no results of instructions",
                    "run these steps with --device cpu: a checkpoint of one device loads on all devices");
  EXPECT_USER_ERROR(compile({.check_ids = true}),
                    "the device 'xla' cannot check ids: XLA shows no operands of instructions",
                    "leave the check out, or run with --device cpu");
  EXPECT_USER_ERROR(compile({.trace = {.steps = 1}}),
                    "the device 'xla' cannot trace instructions: XLA compiles the whole program into one",
                    "trace with --device cpu, or leave the trace out and use the profiler of the plugin's makers");
}

TEST_F(XlaSession, HasNoProcessorsInOtherProcesses) {
  const Mesh mesh = Mesh::parse("a:2");
  const std::shared_ptr<comm::Wire> all = comm::make_threads_wire(2);
  test::OneOfMany wire(all, {ProcessorId(0)});
  EXPECT_USER_ERROR(engine_named("xla", "a test", plugin).open(wire, mesh, {}),
                    "the device 'xla' has no processors in other processes",
                    "use wire::threads(), --wire threads: one process has all devices of the plugin");
}

}  // namespace
}  // namespace weft::xla_test
