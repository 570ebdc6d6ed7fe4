// One processor fails: all end, one error names it, and the session says that it is unusable.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::failure_test {
namespace {

// Processor 0 prints, and all meet in an all_reduce afterwards.
class FailingRun : public ::testing::Test {
 protected:
  // `fail` is called by the processor that prints.
  void make(const std::function<void()>& fail) {
    session.emplace(Mesh::parse("data:2 model:2"), wire::threads(), device::reference(),
                    SessionOptions{.deadline_seconds = 60, .print = [fail](const std::string&) { fail(); }});
    step.emplace(session->compile(g, Layout::parse("a:data b:model"), {.fetch = {y}, .update = {update}}));
  }

  const Dim a{"a", 4}, b{"b", 4};
  Graph g;
  Tensor w = g.variable("w", {a, b}, init::ones());
  Tensor shown = print(w, "w");
  Tensor y = reduce_sum(square(shown * 2.0));
  Tensor update = assign_add(w, w* y);
  std::optional<Session> session;
  std::optional<Executable> step;
};

TEST_F(FailingRun, EndsOnEveryProcessorAndNamesTheOne) {
  make([] { throw std::runtime_error("the printer is out of paper"); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_RUN_ERROR(step->run(), "the printer is out of paper", "processor 0 (data=0 model=0) of mesh data:2 model:2");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "someone waited for the deadline";
}

// The error of a host function may be of our own kind: peers must not wait for its processor.
TEST_F(FailingRun, EndsWhateverIsThrown) {
  make([] { throw RunError({.code = "test.paper", .what = "no paper", .where = "printer", .fix = "add some"}); });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_RUN_ERROR(step->run(), "no paper");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << "someone waited for the deadline";
}

TEST_F(FailingRun, NamesTheUsersLine) {
  make([] { throw std::runtime_error("out of paper"); });
  try {
    step->run();
    FAIL() << "the run did not fail";
  } catch (const RunError& error) {
    // Whoever is caught first, the text says what failed and on whom.
    EXPECT_NE(std::string(error.what()).find("processor 0 (data=0 model=0)"), std::string::npos) << error.what();
  }
}

TEST_F(FailingRun, LeavesTheSessionUnusable) {
  make([] { throw std::runtime_error("out of paper"); });
  EXPECT_THROW(step->run(), RunError);
  EXPECT_RUN_ERROR(step->run(), "this session is unusable since a run failed: ", "out of paper",
                   "where: session on mesh data:2 model:2", "fix:   make a new Session");
  EXPECT_RUN_ERROR(session->value("w"), "this session is unusable");
  EXPECT_RUN_ERROR(session->set_value("w", Array({a, b}, DType::kF32)), "this session is unusable");
  EXPECT_RUN_ERROR(session->compile(g, Layout(), {.fetch = {y}}), "this session is unusable");
}

TEST_F(FailingRun, AnotherSessionIsNotTouched) {
  make([] { throw std::runtime_error("out of paper"); });
  EXPECT_THROW(step->run(), RunError);
  make([] {});
  EXPECT_EQ(step->run().scalar(y), 64);
  EXPECT_EQ(session->value("w").at(0), 65);
}

}  // namespace
}  // namespace weft::failure_test
