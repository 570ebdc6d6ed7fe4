// What befalls a long run from outside: signals, closed terminals and pipes, full disks. None of it may cost the weights.
#include "train/signals.h"

#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <functional>
#include <thread>

#include "small_commands.h"
#include "support/expect_error.h"

namespace weft::train::signal_test {
namespace {

namespace fs = std::filesystem;
using test::ran;
using test::Ran;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::KilledBySignal;
using ::testing::Not;

const std::string kEndless = "run.steps=1000000,run.checkpoint_minutes=0,mesh.workers=1";

std::int64_t lines_of(const std::string& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

// Runs `work` once the run has written so many lines of metrics.
std::jthread after_lines(const std::string& folder, std::int64_t lines, const std::function<void()>& work) {
  return std::jthread([=](const std::stop_token& stop) {
    while (!stop.stop_requested() && lines_of(folder + "/metrics.jsonl") < lines)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (!stop.stop_requested()) work();
  });
}

class Signal : public ::testing::TestWithParam<int> {};

TEST_P(Signal, StopsAfterACheckpoint) {
  const SmallRun run("signal");
  const std::jthread sender = after_lines(run.config.out(), 2, [] { kill(getpid(), GetParam()); });
  const Trained done = train(run.with(kEndless), kQuiet);
  EXPECT_TRUE(done.stopped);
  ASSERT_TRUE(Checkpoint::latest(run.config.out()));
  EXPECT_EQ(Checkpoint::latest(run.config.out())->state().step, done.step);
}
INSTANTIATE_TEST_SUITE_P(All, Signal, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE),
                         [](const auto& info) { return std::string("Sig") + sigabbrev_np(info.param); });

TEST(StopSignals, ASecondWishEndsTheProcess) {
  for (const int number : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          const StopSignals signals;
          raise(number);
          raise(number);
        },
        KilledBySignal(number), "");
  }
}

TEST(StopSignals, WhatComesAgainByItselfDoesNot) {
  const StopSignals signals;
  EXPECT_FALSE(signals.asked());
  for (const int number : {SIGHUP, SIGPIPE, SIGHUP, SIGPIPE}) raise(number);
  EXPECT_TRUE(signals.asked());
}

TEST(StopSignals, AreAsBeforeAfterwards) {
  { const StopSignals signals; }
  for (const int number : {SIGHUP, SIGPIPE, SIGXFSZ}) EXPECT_EXIT(raise(number), KilledBySignal(number), "");
  signal(SIGHUP, SIG_IGN);  // as nohup does
  {
    const StopSignals signals;
    raise(SIGHUP);
    EXPECT_FALSE(signals.asked());
  }
  signal(SIGHUP, SIG_DFL);
}

std::int64_t step_in(const std::string& folder) {
  const std::optional<Checkpoint> found = Checkpoint::latest(folder);
  return found ? found->state().step : -1;
}

TEST(Outside, AReaderThatEndsStopsTheRunAfterACheckpoint) {
  const SmallRun run("pipe", kEndless);
  const Ran head =
      ran("{ timeout 120 " + train_command(run, "out") + "; echo $? > " + run.folder + "/code; } | head -n 2");
  EXPECT_EQ(head.output.find("warning"), std::string::npos) << head.output;
  std::string code;
  std::ifstream(run.folder + "/code") >> code;
  EXPECT_EQ(code, "0");
  EXPECT_GT(step_in(run.folder + "/out"), 0);
}

TEST(Outside, AClosedTerminalStopsTheRunAfterACheckpoint) {
  const SmallRun run("terminal", kEndless);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  ASSERT_GE(child, 0);
  if (child == 0) {
    execl(WEFT_COMMAND, "weft", "train", run.config_path().c_str(), nullptr);
    _exit(99);
  }
  std::string seen;
  char text[512];
  while (seen.find("step 3 of") == std::string::npos) {
    const ssize_t got = read(terminal, text, sizeof text);
    if (got <= 0) break;
    seen.append(text, static_cast<std::size_t>(got));
  }
  EXPECT_THAT(seen, HasSubstr("step 3 of"));
  close(terminal);
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 1200 && (ended = waitpid(child, &status, WNOHANG)) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (ended == 0) kill(child, SIGKILL);
  ASSERT_EQ(ended, child) << "it went on for two minutes";
  EXPECT_TRUE(WIFEXITED(status)) << "killed by " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(step_in(run.folder + "/out"), 0);
}

std::vector<std::int64_t> steps_in(const std::string& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename(); name.starts_with("step-"))
      steps.push_back(std::stoll(name.substr(5)));
  std::sort(steps.begin(), steps.end());
  return steps;
}

TEST(Outside, TheClockSavesToo) {
  const SmallRun run("minutes", "run.steps=4,run.keep=0");
  train(run.with("run.checkpoint_minutes=0.0000001"), kQuiet);
  EXPECT_EQ(steps_in(run.folder + "/out"), (std::vector<std::int64_t>{1, 2, 3, 4}));
  train(run.with("run.checkpoint_minutes=0", "never"), kQuiet);
  EXPECT_EQ(steps_in(run.folder + "/never"), std::vector<std::int64_t>{4});
  EXPECT_EQ(RunConfig{}.checkpoint_minutes, 10);
  EXPECT_USER_ERROR(train(run.with("run.checkpoint_minutes=-1"), kQuiet),
                    "checkpoints cannot be less than 0 minutes apart",
                    "set run.checkpoint_minutes to minutes, or to 0 for none");
}

TEST(Outside, TheClockOfTheFirstRankSavesForAll) {
  if (std::string(WEFT_MPIRUN).empty()) GTEST_SKIP() << "there is no mpirun";
  const SmallRun run("minutes_ranks",
                     "run.steps=4,run.keep=0,mesh.wire=mpi,mesh.mesh=a:2,mesh.layout=batch:a,"
                     "run.checkpoint_minutes=0.0000001");
  const Ran ranks = test::mpirun(2, train_command(run, "out"));
  EXPECT_EQ(ranks.code, 0) << ranks.output;
  EXPECT_EQ(steps_in(run.folder + "/out"), (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST(Outside, MetricsThatCannotBeWrittenAreReportedOnce) {
  const SmallRun run("full");
  fs::create_directories(run.folder + "/out");
  fs::create_symlink("/dev/full", run.folder + "/out/metrics.jsonl");
  const Ran full = ran(train_command(run, "out"));
  EXPECT_EQ(full.code, 0) << full.output;
  EXPECT_EQ(full.count("warning: there are no metrics of step 1, and perhaps of later ones: cannot write metrics to '" +
                       run.folder + "/out/metrics.jsonl': No space left on device; training goes on"),
            1u)
      << full.output;
  EXPECT_EQ(full.count("warning"), 1u) << full.output;
  EXPECT_EQ(step_in(run.folder + "/out"), 12);
}

// Files of at most 32 KiB: room for metrics, but not for weights.
TEST(Outside, ASaveThatFailsIsReportedAtOnceAndTriedAgain) {
  const SmallRun run("no_room", "run.steps=600,run.log_every=10,run.checkpoint_every=300,mesh.workers=1");
  const Ran full = ran("ulimit -f 64; " + train_command(run, "out", "--quiet"));
  EXPECT_EQ(full.code, 3) << full.output;
  EXPECT_THAT(full.output, AllOf(HasSubstr("warning: there is no checkpoint of step 300: cannot write '"),
                                 HasSubstr("File too large; training goes on, and the next checkpoint is tried"),
                                 HasSubstr("error: cannot write '")));
  const Ran told = ran("ulimit -f 64; " + train_command(run, "out"));
  EXPECT_LT(told.output.find("warning: there is no checkpoint of step 300"), told.output.find("step 590 of 600"));
  EXPECT_EQ(told.count("warning"), 1u);
  EXPECT_EQ(step_in(run.folder + "/out"), -1);
}

TEST(Outside, ASaveThatFailsIsMadeUpForByTheNext) {
  const SmallRun run("room_later",
                     "run.steps=1000,run.log_every=10,run.checkpoint_every=100,run.keep=0,mesh.workers=1");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit few = before;
  few.rlim_cur = 32 << 10;
  setrlimit(RLIMIT_FSIZE, &few);
  const std::jthread later = after_lines(run.folder + "/out", 22, [&] { setrlimit(RLIMIT_FSIZE, &before); });
  ::testing::internal::CaptureStderr();
  const Trained done = train(run.with(""), kQuiet);
  const std::string said = ::testing::internal::GetCapturedStderr();
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(said, HasSubstr("warning: there is no checkpoint of step 100"));
  EXPECT_EQ(done.step, 1000);
  EXPECT_THAT(steps_in(run.folder + "/out"), AllOf(Contains(1000), Not(Contains(100))));
}

}  // namespace
}  // namespace weft::train::signal_test
