// Runs that are killed at chosen and at random moments, as a user would start them: every restart must find a whole
// checkpoint, and the losses must be those of a run that nobody killed.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <random>

#include "small_commands.h"
#include "support/soak.h"

namespace weft::train::kill_test {
namespace {

using test::ran;
using test::Ran;

class Killed {
 public:
  explicit Killed(const SmallRun& run) : run_(run) {
    const Ran whole = ran(train_command(run_, "whole"));
    EXPECT_EQ(whole.code, 0) << whole.output;
    expected_ = losses_in(run_.folder + "/whole");
    EXPECT_EQ(static_cast<std::int64_t>(expected_.size()), run_.config.run.steps);
  }

  // Killed at each of these moments, one run after the other in the same folder, and then let through.
  void expect_same(const std::vector<std::string>& moments) {
    for (const std::string& moment : moments) {
      SCOPED_TRACE(moment);
      const Ran killed = ran(train_command(run_, "killed", "--fail-at " + moment));
      EXPECT_NE(killed.code, 0) << "nothing was killed at " << moment << "\n" << killed.output;
    }
    const Ran last = ran(train_command(run_, "killed"));
    EXPECT_EQ(last.code, 0) << last.output;
    EXPECT_EQ(losses_in(run_.folder + "/killed"), expected_);
    for (const auto& entry : std::filesystem::directory_iterator(run_.folder + "/killed"))
      EXPECT_EQ(entry.path().filename().string().find("tmp"), std::string::npos) << entry.path();
    std::filesystem::remove_all(run_.folder + "/killed");
  }

 private:
  const SmallRun& run_;
  std::map<std::int64_t, std::string> expected_;
};

const char* const kOn2x2 =
    "run.steps=12,run.checkpoint_every=2,mesh.mesh=a:2 b:2,mesh.layout=batch:a heads,d_ff,vocab:b";

TEST(Kill, RunsGoOn) {
  const SmallRun run("kill", kOn2x2);
  Killed(run).expect_same({"step:4", "mid-shard:2", "before-latest:2"});
}

TEST(SoakKill, AtEveryPhaseAndAtRandom) {
  const SmallRun run("kill_soak", kOn2x2);
  Killed killed(run);
  const std::vector<std::string> phases = {"step", "save-begun", "mid-shard", "before-rename", "before-latest"};
  const auto at = [&](std::size_t phase, std::size_t time) {
    std::ostringstream moment;
    moment << phases[phase] << ":" << time;
    return moment.str();
  };
  for (std::size_t phase = 0; phase < phases.size(); ++phase)
    killed.expect_same({at(phase, 1), at(phase, 2), at(phase, 1)});
  std::mt19937 draw(11);
  for (int i = 0; i < test::soak_count(5); ++i) killed.expect_same({at(draw() % 5, 1 + draw() % 2), at(0, 1 + draw() % 2)});
}

// kill -9 from outside, at moments that nobody chose.
TEST(SoakKill, FromOutside) {
  const SmallRun run("kill_outside", "run.steps=400,run.checkpoint_every=20");
  const Ran whole = ran(train_command(run, "whole"));
  ASSERT_EQ(whole.code, 0) << whole.output;
  std::mt19937 draw(5);
  for (int i = 0; i < test::soak_count(20); ++i) {
    std::ostringstream command;
    command << "timeout -s KILL 0." << 100 + draw() % 500 << " " << train_command(run, "killed");
    ran(command.str());
  }
  const Ran last = ran(train_command(run, "killed"));
  EXPECT_EQ(last.code, 0) << last.output;
  EXPECT_EQ(losses_in(run.folder + "/killed"), losses_in(run.folder + "/whole"));
}

// One rank of four dies; mpirun ends the others.
TEST(Kill, OneRankOfFour) {
  if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  const SmallRun run("kill_rank",
                     "run.steps=6,run.checkpoint_every=2,mesh.wire=mpi,mesh.mesh=a:2 b:2,"
                     "mesh.layout=batch:a heads,d_ff,vocab:b");
  const Ran whole = test::mpirun(4, train_command(run, "whole"));
  ASSERT_EQ(whole.code, 0) << whole.output;
  const Ran killed = test::mpirun(4, train_command(run, "killed", "--fail-at step:4@2"));
  EXPECT_NE(killed.code, 0);
  const Ran last = test::mpirun(4, train_command(run, "killed"));
  EXPECT_EQ(last.code, 0) << last.output;
  EXPECT_EQ(losses_in(run.folder + "/killed"), losses_in(run.folder + "/whole"));
}

}  // namespace
}  // namespace weft::train::kill_test
