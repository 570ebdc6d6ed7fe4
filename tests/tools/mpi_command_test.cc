// Programs under mpirun as a user meets them: one output, one error text, the exit code of a process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/str.h"
#include "comm/launch.h"
#include "support/command.h"

namespace weft::mpi_command_test {
namespace {

using test::Ran;

class MpiCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    if (access(WEFT_MPIRUN, X_OK) != 0) GTEST_SKIP() << "there is no mpirun";
    if (comm::launched()) GTEST_SKIP() << "this is a rank itself";
  }

  static Ran mpirun(int ranks, const std::string& program, const std::string& errors = "2>&1") {
    return test::mpirun(ranks, str(program, " ", errors));
  }

  static void expect_refused(const Ran& ran, const std::string& what) {
    EXPECT_EQ(ran.code, 2) << ran.output;
    EXPECT_EQ(ran.count("error: "), 1u) << ran.output;
    EXPECT_EQ(ran.count(what), 1u) << ran.output;
  }
};

TEST_F(MpiCommand, RanksPrintWhatThreadsPrint) {
  const Ran threads = test::ran(str(WEFT_TWO_LAYER, " 'data:2 model:2' 2>&1"));
  ASSERT_EQ(threads.code, 0) << threads.output;
  EXPECT_EQ(threads.count("loss "), 5u) << threads.output;
  const Ran ranks = mpirun(4, str(WEFT_TWO_LAYER, " 'data:2 model:2'"));
  EXPECT_EQ(ranks.code, 0);
  EXPECT_EQ(ranks.output.substr(ranks.output.find("step ")), threads.output.substr(threads.output.find("step ")));
  EXPECT_EQ(ranks.count("\n  staging    1 MiB, to gather what is fetched\n"), 1u) << ranks.output;
}

// Without a --wire the ranks find each other.
TEST_F(MpiCommand, RanksNeedNoWire) {
  const Ran example = mpirun(2, str(WEFT_TWO_LAYER, " data:2 batch:data"));
  EXPECT_EQ(example.code, 0) << example.output;
  EXPECT_EQ(example.count("loss "), 5u) << example.output;
  const Ran bench = mpirun(
      2, str(WEFT_COMMAND, " bench lm --config tiny --steps 1 --warmup 0 --mesh all:2 --layout ", "batch:all --json"));
  EXPECT_EQ(bench.code, 0) << bench.output;
  EXPECT_EQ(bench.count("\"wire\":\"mpi\""), 1u) << bench.output;
  expect_refused(mpirun(2, str(WEFT_COMMAND, " bench lm --config tiny --wire threads")),
                 "mpirun started 2 processes, of which this is number 0, but the wire is threads");
}

// Another launcher's ranks, or another MPI's, do not find each other: each would train alone.
TEST_F(MpiCommand, ARankOfSeveralThatIsAloneStops) {
  const Ran alone = test::ran(str("PMI_SIZE=4 PMI_RANK=0 ", WEFT_TWO_LAYER, " 2>&1"));
  expect_refused(alone, "PMI started 4 processes, of which this is number 0, but MPI finds it alone");
  EXPECT_EQ(alone.count("fix:   start them with the mpirun of Open MPI"), 1u) << alone.output;
}

TEST_F(MpiCommand, RefusalsAreToldOnce) {
  expect_refused(mpirun(2, str(WEFT_TWO_LAYER, " --wire mpi 'data:2 model:2'")),
                 "mesh data:2 model:2 has 4 processors, but mpirun started 2 processes");
  expect_refused(mpirun(3, str(WEFT_TWO_LAYER, " --wire mpi data:3 batch:data")), "cannot be split evenly");
  expect_refused(mpirun(2, str(WEFT_TWO_LAYER, " --wire pigeons data:2")), "there is no wire 'pigeons'");
  expect_refused(mpirun(2, str(WEFT_COMMAND, " explain two_later")), "there is no built-in model 'two_later'");
}

// The first rank prints for all of them: the losses of threads, and a trace of every rank.
TEST_F(MpiCommand, BenchLmSpeaksForAllRanks) {
  const std::string words = "bench lm --config tiny --steps 2 --warmup 1 --mesh all:2 --layout batch:all --json";
  const std::string file = str(testing::TempDir(), "/weft_mpi_trace_", getpid(), ".json");
  const auto losses = [](const Ran& ran) {
    const std::size_t begin = ran.output.find("\"losses10\"");
    return begin == std::string::npos ? ran.output : ran.output.substr(begin, ran.output.find(']', begin) - begin);
  };
  const Ran threads = test::ran(str(WEFT_COMMAND, " ", words, " 2>&1"));
  const Ran ranks = mpirun(2, str(WEFT_COMMAND, " ", words, " --wire mpi --trace ", file));
  EXPECT_EQ(ranks.code, 0) << ranks.output;
  EXPECT_EQ(ranks.count("\"system\""), 1u) << ranks.output;
  EXPECT_EQ(losses(ranks), losses(threads));
  const Ran summary = test::ran(str(WEFT_COMMAND, " trace-summary ", file, " --json 2>&1"));
  EXPECT_EQ(summary.count("\"processors\": 2"), 1u) << summary.output;
  EXPECT_EQ(summary.count("\"steps\": 2"), 1u) << summary.output;
  std::remove(file.c_str());
}

}  // namespace
}  // namespace weft::mpi_command_test
