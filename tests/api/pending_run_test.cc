// Steps that are started and read later.
#include <gtest/gtest.h>

#include <future>

#include "base/str.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "weft/weft.h"

namespace weft::pending_run_test {
namespace {

// A counter that says what it was, through a print() that takes its time or fails if asked to.
struct Counter {
  explicit Counter(
      const std::string& mesh, std::function<void()> at_print = [] {})
      : session(Mesh::parse(mesh), wire::threads(), device::cpu(), {.print = [=](const std::string&) { at_print(); }}) {
    const Tensor count = graph.variable("count", {{"a", 4}}, init::zeros());
    before = print(count * 1.0, "count");
    scalar_metric("first", reduce_sum(before));
    step.emplace(session.compile(
        graph, Layout::parse("a:data?"),
        {.fetch = {before}, .update = {assign_add(count, constant(graph, 1.0, {{"a", 4}}))}, .metrics = true}));
  }

  Graph graph;
  Tensor before;
  Session session;
  std::optional<Executable> step;
};

TEST(RunningStep, ReturnsWhileTheProcessorsWork) {
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  Counter counter("data:2", [release] { release.wait(); });
  PendingRun first = counter.step->start();
  EXPECT_EQ(counter.step->step(), 1);
  released.set_value();  // the step could not end before
  EXPECT_EQ(first.get()[counter.before].values(), (std::vector<double>(4, 0.0)));
}

TEST(RunningStep, ResultsAreOfTheStepWhenItIsReadLate) {
  for (const char* mesh : {"", "data:2", "data:4"}) {
    Counter counter(mesh);
    std::optional<PendingRun> before = counter.step->start();
    for (int i = 0; i < 20; ++i) {
      PendingRun now = counter.step->start();
      const Values values = before->get();
      EXPECT_EQ(values[counter.before].values(), (std::vector<double>(4, i)));
      EXPECT_EQ(values.metrics().at("first"), 4 * i);
      before = std::move(now);
    }
  }
}

TEST(RunningStep, OthersWaitForIt) {
  Counter counter("data:2");
  {
    const PendingRun unread = counter.step->start();
    EXPECT_EQ(counter.session.value("count").values(), (std::vector<double>(4, 1)));
  }
  PendingRun replaced = counter.step->start();
  replaced = counter.step->start();
  counter.step->start();  // forgotten at once
  EXPECT_EQ(counter.step->run()[counter.before].values(), (std::vector<double>(4, 4)));
  EXPECT_EQ(replaced.get()[counter.before].values(), (std::vector<double>(4, 2)));
}

TEST(RunningStep, OutlivesWhatStartedIt) {
  std::optional<PendingRun> running;
  Tensor before;
  {
    Counter counter("data:2");
    before = counter.before;
    running = counter.step->start();
  }
  EXPECT_EQ(running->get()[before].values(), (std::vector<double>(4, 0)));
}

TEST(RunningStep, AFailureIsToldToTheNextWhoAsks) {
  const auto fail = [] { throw std::runtime_error("the paper is out"); };
  {
    Counter counter("data:2", fail);
    PendingRun first = counter.step->start();
    EXPECT_RUN_ERROR(counter.step->start(), "the paper is out");
    EXPECT_RUN_ERROR(counter.step->start(), "this session is unusable since a run failed: ", "the paper is out");
    EXPECT_RUN_ERROR(first.get(), "the paper is out");
  }
  Counter counter("data:2", fail);
  counter.step->start();  // nobody asks
  EXPECT_RUN_ERROR(counter.session.value("count"), "this session is unusable since a run failed: ", "the paper is out");
}

TEST(RunningStep, IsReadOnce) {
  Counter counter("");
  PendingRun running = counter.step->start();
  running.get();
  EXPECT_USER_ERROR(running.get(), "the results of a step were read twice", "PendingRun::get",
                    "keep the result of the first call");
}

TEST(Needed, IsAllOfAnInputWhereAllProcessorsAre) {
  Graph g;
  const Tensor x = g.input("x", {{"a", 4}, {"b", 6}}), unused = g.input("unused", {{"a", 4}});
  Session session(Mesh::parse("data:2"));
  const Executable step = session.compile(g, Layout::parse("a:data"), {.fetch = {reduce_sum(x)}});
  EXPECT_EQ(step.local_range(x, "a"), std::pair(std::int64_t{0}, std::int64_t{4}));
  EXPECT_EQ(step.local_range(x, "b"), std::pair(std::int64_t{0}, std::int64_t{6}));
  EXPECT_EQ(step.local_range(unused, "a"), std::pair(std::int64_t{0}, std::int64_t{0}));
  EXPECT_USER_ERROR(step.local_range(x, "c"), "input 'x' [a=4 b=6] has no dim 'c'", "Executable::local_range",
                    "name one of its dims");
  EXPECT_USER_ERROR(step.local_range(exp(x), "a"), "is not an input of this graph", "Executable::local_range");
}

}  // namespace
}  // namespace weft::pending_run_test
