// A process that is killed while it saves: the next one finds a whole checkpoint and goes on as if nothing had been.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <random>

#include "checkpoint/training.h"
#include "support/soak.h"

namespace weft::kill_test {
namespace {

using test::new_folder;
using test::Training;

constexpr int kSteps = 6;  // a save after each
const test::TrainingOptions kGrid{.mesh = "data:2 model:2", .layout = "batch:data hidden:model"};

// Where a child dies: when the phase is come to for the `count`th time.
struct Death {
  std::string phase;
  int count = 0;
};

// Resumes from the folder if it can, trains and saves to the end; appends a line "step loss" for each step to a file.
void train_in(const std::string& folder, const Death& death) {
  int left = death.count;
  const auto at = [&](const std::string& phase) {
    if (phase == death.phase && --left == 0) raise(SIGKILL);
  };
  Training t(kGrid);
  Checkpoints checkpoints(t.session, {.folder = folder, .keep = 2});
  detail::on_phase(checkpoints, at);
  if (const std::optional<Checkpoint> found = Checkpoint::latest(folder)) t.resume(*found);
  std::ofstream losses(folder + "/losses", std::ios::app);
  losses.precision(17);
  while (t.done < kSteps) {
    const double loss = t.train(1)[0];
    losses << t.done << " " << loss << std::endl;
    checkpoints.save(t.state());
  }
  checkpoints.wait();
}

// 0 if it came to its end, else the signal that ended it.
int child(const std::string& folder, const Death& death) {
  const pid_t id = fork();
  if (id == 0) {
    try {
      train_in(folder, death);
    } catch (const std::exception& error) {
      std::cerr << error.what();
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(id, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the child failed";
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

std::vector<double> uninterrupted() {
  static const std::vector<double> losses = [] {
    const std::string folder = new_folder("uninterrupted");
    std::filesystem::create_directories(folder);
    EXPECT_EQ(child(folder, {}), 0);
    std::ifstream file(folder + "/losses");
    std::vector<double> all(kSteps);
    for (double step = 0, loss = 0; file >> step >> loss;) all[static_cast<std::size_t>(step) - 1] = loss;
    return all;
  }();
  return losses;
}

// Every loss of any child is that of the uninterrupted run, bit for bit.
void expect_same_losses(const std::string& folder) {
  std::ifstream file(folder + "/losses");
  int lines = 0;
  for (double step = 0, loss = 0; file >> step >> loss; ++lines)
    EXPECT_EQ(loss, uninterrupted()[static_cast<std::size_t>(step) - 1]) << "step " << step;
  EXPECT_GE(lines, kSteps);
}

// Children die so, one after another, in one folder; then one comes to its end.
void expect_survived(const std::string& name, const std::vector<Death>& deaths) {
  const std::string folder = new_folder(name);
  std::filesystem::create_directories(folder);
  std::int64_t best = 0;
  for (const Death& death : deaths) {
    SCOPED_TRACE(death.phase + " " + std::to_string(death.count));
    child(folder, death);
    if (const std::optional<Checkpoint> found = Checkpoint::latest(folder)) {
      EXPECT_GE(found->state().step, best);
      best = found->state().step;
      for (const auto& [variable, about] : found->variables()) found->read(variable);  // holds them to their checksums
    }
  }
  EXPECT_EQ(child(folder, {}), 0);
  EXPECT_EQ(Checkpoint::open(folder).state().step, kSteps);
  expect_same_losses(folder);
  EXPECT_EQ(test::names_in(folder),
            (std::vector<std::string>{".lock", "latest", "losses", "step-00000005", "step-00000006"}));
}

TEST(CheckpointKill, MidShard) { expect_survived("mid_shard", {{"mid-shard", 40}}); }
TEST(CheckpointKill, BeforeRename) { expect_survived("before_rename", {{"before-rename", 3}}); }
TEST(CheckpointKill, BeforeLatest) { expect_survived("before_latest", {{"before-latest", 2}, {"before-latest", 1}}); }

TEST(CheckpointKill, TheChildReallyDies) {
  const std::string folder = new_folder("dies");
  std::filesystem::create_directories(folder);
  for (const char* phase : {"save-begun", "mid-shard", "before-rename", "before-latest"})
    EXPECT_EQ(child(folder, {phase, 1}), SIGKILL) << phase;
}

TEST(SoakCheckpointKill, AtRandom) {
  const char* phases[] = {"save-begun", "mid-shard", "mid-shard", "mid-shard", "before-rename", "before-latest"};
  std::mt19937 random(1);
  for (int round = 0; round < test::soak_count(10); ++round) {
    std::vector<Death> deaths;
    for (int i = 0; i < 4; ++i) {
      const std::string phase = phases[random() % std::size(phases)];
      deaths.push_back({phase, static_cast<int>(1 + random() % (phase == "mid-shard" ? 60 : 4))});
    }
    expect_survived("random", deaths);
  }
}

}  // namespace
}  // namespace weft::kill_test
