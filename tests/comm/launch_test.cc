// What launchers say in the environment, and what is said where there is no launcher or no MPI.
#include "comm/launch.h"

#include <cstdlib>
#include <map>
#include <string>

#include "comm/wire.h"
#include "support/expect_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::comm::launch_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The launcher's variables alone, for as long as it lives; then what was there before.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& variables) {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_STEP_NUM_TASKS",
          "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "PMI_SIZE", "PMI_RANK"}) {
      if (const char* text = std::getenv(name)) before_[name] = text;
      unsetenv(name);
    }
    for (const auto& [name, text] : variables) setenv(name.c_str(), text.c_str(), 1);
    now_ = variables;
  }
  ~Environment() {
    for (const auto& [name, text] : now_) unsetenv(name.c_str());
    for (const auto& [name, text] : before_) setenv(name.c_str(), text.c_str(), 1);
  }

 private:
  std::map<std::string, std::string> before_, now_;
};

TEST(Launch, ByHandIsNoLaunch) {
  const Environment none({});
  EXPECT_FALSE(launched().has_value());
}

TEST(Launch, ByMpirun) {
  const Environment rank(
      {{"OMPI_COMM_WORLD_SIZE", "6"}, {"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  const Launch launch = launched().value();
  EXPECT_EQ(launch.by, "mpirun");
  EXPECT_EQ(launch.size, 6);
  EXPECT_EQ(launch.rank, 4);
  EXPECT_EQ(launch.local_rank, 1);
}

TEST(Launch, ByVariablesOfTheNcclWire) {
  const Environment rank({{"WEFT_NCCL_SIZE", "2"}, {"WEFT_NCCL_RANK", "1"}});
  const Launch launch = launched().value();
  EXPECT_EQ(launch.by, kByHand);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.size, 2);
}

TEST(Launch, BySrun) {
  const Environment rank({{"SLURM_STEP_NUM_TASKS", "4"},
                          {"SLURM_PROCID", "3"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_STEP_NODELIST", "n[1-2]"}});
  const Launch launch = launched().value();
  EXPECT_EQ(launch.by, "srun");
  EXPECT_EQ(launch.size, 4);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_THAT(launch.hosts, ElementsAre("n1", "n2"));
}

// sbatch sets these for the script's own shell.
TEST(Launch, ABatchScriptIsNoRank) {
  const Environment script({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}});
  EXPECT_FALSE(launched().has_value());
}

TEST(Launch, ByAnotherLauncher) {
  const Environment rank({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  EXPECT_EQ(launched().value().rank, 1);
}

TEST(Launch, VariablesThatMakeNoSense) {
  {
    const Environment odd({{"PMI_SIZE", "two"}, {"PMI_RANK", "1"}});
    EXPECT_USER_ERROR(launched(), "the launcher's variable PMI_SIZE is 'two'",
                      "start through mpirun or srun, or unset PMI_SIZE to run without ranks");
  }
  const Environment odd({{"PMI_SIZE", "2"}, {"PMI_RANK", "2"}});
  EXPECT_USER_ERROR(launched(), "the launcher calls this process rank 2 of 2",
                    "start through mpirun or srun, or unset both to run without ranks");
}

TEST(Launch, HostListsInShortForm) {
  EXPECT_THAT(expand_hosts(""), IsEmpty());
  EXPECT_THAT(expand_hosts("login"), ElementsAre("login"));
  EXPECT_THAT(expand_hosts("n[01-03,7],login,m[9-10]"), ElementsAre("n01", "n02", "n03", "n7", "login", "m9", "m10"));
  EXPECT_THAT(expand_hosts("a,b"), ElementsAre("a", "b"));
}

TEST(MpiLaunch, MoreProcessorsThanRanks) {
  if (launched()) GTEST_SKIP() << "this is a rank itself";
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  if (mpi_version().empty())
    EXPECT_USER_ERROR(make_mpi_wire(3), "this build has no MPI",
                      "install libopenmpi-dev and openmpi-bin (scripts/setup does), and build again");
  else
    EXPECT_USER_ERROR(make_mpi_wire(3), "a wire of 3 processors in a job of 1 rank",
                      "start one rank per processor: mpirun -n 3 …");
}

}  // namespace
}  // namespace weft::comm::launch_test
