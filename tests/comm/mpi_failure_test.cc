// Whole jobs in which one rank dies, throws, stops or leaves: the others end with one report that names it.
#include <chrono>
#include <string>
#include <tuple>

#include <unistd.h>

#include "base/str.h"
#include "comm/launch.h"
#include "support/command.h"

#include <gtest/gtest.h>

namespace weft::comm::mpi_failure_test {
namespace {

using Outcome = test::Ran;

// A job of three ranks.
Outcome run_job(const std::string& arguments) {
  return test::mpirun(3, str(WEFT_FAILING_RANK, " ", arguments, " 2>&1"));
}

class MpiFailure : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (access(WEFT_MPIRUN, X_OK) != 0) GTEST_SKIP() << "there is no mpirun";
    if (launched()) GTEST_SKIP() << "this is a rank itself";
  }

  void expect(const Outcome& outcome, const std::vector<std::string>& parts) {
    EXPECT_NE(outcome.code, 0);
    EXPECT_NE(outcome.code, 124) << "it hung";
    EXPECT_EQ(outcome.count("report: error:"), 1u) << outcome.output;
    for (const std::string& part : parts)
      EXPECT_NE(outcome.output.find(part), std::string::npos) << "'" << part << "' is not in:\n" << outcome.output;
  }

  const std::string what = GetParam();
};

TEST_P(MpiFailure, ARankIsKilled) {
  expect(run_job(str("kill ", what)),
         {"processor 1 is gone: its process", str("processor 1: finished ", what, " 'first step'"),
          str("in ", what, " 'second step'"), "among processors 0 1 2"});
}

TEST_P(MpiFailure, ARankLeaves) {
  expect(run_job(str("leave ", what)),
         {"processor 1 is gone: its process", str("processor 1: finished ", what, " 'first step'")});
}

TEST_P(MpiFailure, ARankThrows) {
  const Outcome outcome = run_job(str("throw ", what));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.output.find("report: the disk is full"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.count("report: "), 1u) << outcome.output;
}

TEST_P(MpiFailure, ARankStops) {
  const Outcome outcome = run_job(str("stop ", what, " 1"));
  EXPECT_EQ(outcome.code, 3);
  expect(outcome, {str(what, " 'second step' waited 1 s for processor 1 to come"),
                   str("processor 1: finished ", what, " 'first step'")});
}

INSTANTIATE_TEST_SUITE_P(Collectives, MpiFailure,
                         testing::Values("all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute",
                                         "barrier"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace weft::comm::mpi_failure_test
