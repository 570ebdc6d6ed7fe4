// What programs print under mpirun: once, by a process that is there.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "api/state.h"
#include "weft/error.h"

namespace weft {
namespace {

TEST(Speaker, IsTheFirstWhoIsThere) {
  EXPECT_EQ(speaker_of("error: mesh data:2 has 2 processors, but mpirun started 4 processes"), 0);
  EXPECT_EQ(speaker_of("error: all_reduce of 'x' failed: no (processor 0 (data=0) of mesh data:2)"), 0);
  EXPECT_EQ(speaker_of("processor 0 is gone: its process 77 has ended"), 1);
  EXPECT_EQ(speaker_of("processor 0 (data=0 model=0) is gone: its process 77 has ended"), 1);
  EXPECT_EQ(speaker_of("all_gather 'x' waited 2 s for processor 0 (data=0) to come"), 1);
  EXPECT_EQ(speaker_of("all_gather 'x' waited 2 s for processors 0 (p=0) 1 (p=1) 3 (p=3) to come"), 2);
  EXPECT_EQ(speaker_of("waited 2 s for processors 0 1 to come; processor 2: waits"), 2);
  EXPECT_EQ(speaker_of("the launcher ends this run (SIGTERM); gone: processor 0: finished x; gone: processor 1: y"), 2);
  EXPECT_EQ(speaker_of("waited 2 s for processor 10 to come"), 0);
  EXPECT_EQ(speaker_of("processor 0: waits in all_reduce; waited 2 s for processor 1 to come"), 0);
}

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
  const RunError error({.what = "no", .where = "here", .fix = "none"});
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
    EXPECT_EQ(written(), "error: no\nwhere: here\nfix:   none\n");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(wire::process() > 0 ? 2 : 0));
  }
}

TEST(Report, NeedsNoSenseInTheEnvironment) {
  const Variable size("OMPI_COMM_WORLD_SIZE", "many"), rank("OMPI_COMM_WORLD_RANK", "7");
  EXPECT_EQ(wire::process(), 0);
}

}  // namespace
}  // namespace weft
