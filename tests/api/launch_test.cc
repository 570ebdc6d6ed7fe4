// What programs print under mpirun: once, by a process that is there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <optional>

#include "support/expect_error.h"
#include "weft/weft.h"

namespace weft::launch_test {
namespace {

// Sets a variable for one test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    setenv(name, value, 1);
  }
  ~Variable() {
    if (old_) setenv(name_, old_->c_str(), 1);
    else unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Report, IsWrittenByWhoeverIsNotEnded) {
  const UserError error({.code = "test.no", .what = "no", .where = "here", .fix = "none"});
  const auto written = [&] {
    ::testing::internal::CaptureStderr();
    wire::report(error);
    return ::testing::internal::GetCapturedStderr();
  };
  const Variable size("OMPI_COMM_WORLD_SIZE", "4");
  for (const char* rank : {"0", "2"}) {
    const Variable mine("OMPI_COMM_WORLD_RANK", rank);
    EXPECT_EQ(wire::process(), std::atoi(rank));
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(written(), "error: no\nwhere: here\nfix:   none\ncode:  test.no\n");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(wire::process() > 0 ? 2 : 0));
  }
}

TEST(Wire, IsMpiBesideOtherProcesses) {
  EXPECT_EQ(wire::named("mpi").name, "mpi");
  EXPECT_EQ(wire::named("threads").name, "threads");
  EXPECT_EQ(wire::named("").name, "threads");
  const Variable rank("OMPI_COMM_WORLD_RANK", "0");
  {
    const Variable size("OMPI_COMM_WORLD_SIZE", "1");
    EXPECT_EQ(wire::automatic().name, "threads") << "one process has nobody to talk to";
    EXPECT_EQ(wire::named("threads").name, "threads");
  }
  const Variable size("OMPI_COMM_WORLD_SIZE", "4");
  EXPECT_EQ(wire::automatic().name, "mpi");
  EXPECT_EQ(wire::named("").name, "mpi");
  EXPECT_USER_ERROR(wire::named("threads"),
                    "mpirun started 4 processes, of which this is number 0, but the wire is threads: each process "
                    "would do all of the work",
                    "--wire threads, or mesh.wire of the config",
                    "leave the wire out: it is mpi under mpirun or srun; or start one process without mpirun");
}

TEST(Wire, IsNcclWhereItsVariablesSaySo) {
  const Variable size("WEFT_NCCL_SIZE", "2"), rank("WEFT_NCCL_RANK", "1");
  EXPECT_EQ(wire::automatic().name, "nccl");
  EXPECT_EQ(wire::named("").name, "nccl");
  EXPECT_EQ(wire::process(), 1);
}

TEST(Report, NeedsNoSenseInTheEnvironment) {
  const Variable size("OMPI_COMM_WORLD_SIZE", "many"), rank("OMPI_COMM_WORLD_RANK", "7");
  EXPECT_EQ(wire::process(), 0);
}

}  // namespace
}  // namespace weft::launch_test
