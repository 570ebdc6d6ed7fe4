// Programs under mpirun as a user meets them: one output, one error text, the exit code of a process.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "base/str.h"
#include "comm/launch.h"
#include "support/command.h"

namespace weft {
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
  const Ran ranks = mpirun(4, str(WEFT_TWO_LAYER, " --wire mpi 'data:2 model:2'"));
  EXPECT_EQ(ranks.code, 0);
  EXPECT_EQ(ranks.output.substr(ranks.output.find("step ")), threads.output.substr(threads.output.find("step ")));
  EXPECT_EQ(ranks.count("\n  staging    1 MiB, to gather what is fetched\n"), 1u) << ranks.output;
}

TEST_F(MpiCommand, RefusalsAreToldOnce) {
  expect_refused(mpirun(2, str(WEFT_TWO_LAYER, " --wire mpi 'data:2 model:2'")),
                 "mesh data:2 model:2 has 4 processors, but mpirun started 2 processes");
  expect_refused(mpirun(3, str(WEFT_TWO_LAYER, " --wire mpi data:3 batch:data")), "cannot be split evenly");
  expect_refused(mpirun(2, str(WEFT_TWO_LAYER, " --wire pigeons data:2")), "there is no wire 'pigeons'");
  expect_refused(mpirun(2, str(WEFT_COMMAND, " explain two_later")), "there is no built-in model 'two_later'");
}

}  // namespace
}  // namespace weft
