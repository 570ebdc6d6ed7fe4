// One of four ranks is killed while all save: the job ends, and the next one goes on from a whole checkpoint.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <sstream>

#include "base/str.h"
#include "checkpoint/training.h"
#include "support/command.h"

namespace weft::rank_kill_test {
namespace {

constexpr int kSteps = 5;

// WEFT_KILL is "rank phase count"; the losses of processor 0 go to a file, a line "step loss" for each.
TEST(MpiRankKillChild, Trains) {
  const char* folder = std::getenv("WEFT_KILL_FOLDER");
  if (!folder) GTEST_SKIP() << "run by MpiRankKill";
  std::istringstream words(std::getenv("WEFT_KILL"));
  int rank = -1, left = 0;
  std::string when;
  words >> rank >> when >> left;
  const auto at = [&](const std::string& phase) {
    if (wire::process() == rank && phase == when && --left == 0) raise(SIGKILL);
  };
  const test::TrainingOptions grid{
      .mesh = "data:2 model:2", .layout = "batch:data hidden:model", .store = Store::parse("*:data", 1)};
  test::Training t(Session(Mesh::parse(grid.mesh), wire::mpi(), device::reference(), {.seed = 7, .store = grid.store}),
                   grid);
  Checkpoints checkpoints(t.session, {.folder = folder, .keep = 2});
  detail::on_phase(checkpoints, at);
  if (const std::optional<Checkpoint> found = Checkpoint::latest(folder)) t.resume(*found);
  std::ofstream losses;
  if (wire::process() == 0) losses.open(str(folder, "/losses"), std::ios::app);
  losses.precision(17);
  while (t.done < kSteps) {
    const double loss = t.train(1)[0];
    losses << t.done << " " << loss << std::endl;
    checkpoints.save(t.state());
  }
  checkpoints.wait();
}

int train(const std::string& folder, const std::string& death) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  return test::mpirun(4, str("env WEFT_KILL_FOLDER=", folder, " \"WEFT_KILL=", death, "\" ", program,
                             " --gtest_brief=1 --gtest_filter=MpiRankKillChild.* 2>&1"))
      .code;
}

TEST(MpiRankKill, OneOfFour) {
  if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  const std::string whole = test::new_folder("rank_whole"), folder = test::new_folder("rank_killed");
  std::filesystem::create_directories(whole);
  std::filesystem::create_directories(folder);
  ASSERT_EQ(train(whole, "-"), 0);
  std::map<int, double> want;
  std::ifstream file(whole + "/losses");
  for (double step = 0, loss = 0; file >> step >> loss;) want[static_cast<int>(step)] = loss;
  EXPECT_EQ(want.size(), std::size_t{kSteps});

  EXPECT_NE(train(folder, "1 mid-shard 7"), 0);
  EXPECT_NE(train(folder, "0 before-latest 2"), 0);
  EXPECT_NE(train(folder, "3 save-begun 1"), 0);
  const std::optional<Checkpoint> found = Checkpoint::latest(folder);
  ASSERT_TRUE(found.has_value());
  EXPECT_LT(found->state().step, kSteps);
  ASSERT_EQ(train(folder, "-"), 0);
  EXPECT_EQ(Checkpoint::open(folder).state().step, kSteps);
  std::ifstream losses(folder + "/losses");
  for (double step = 0, loss = 0; losses >> step >> loss;) EXPECT_EQ(loss, want.at(static_cast<int>(step))) << step;
}

}  // namespace
}  // namespace weft::rank_kill_test
