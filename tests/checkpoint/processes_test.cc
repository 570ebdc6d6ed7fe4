// Sessions of several processes: each writes and reads its own, and all come to the same end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/compile.h"
#include "checkpoint/training.h"
#include "support/expect_error.h"
#include "support/processes.h"
#include "weft/detail/session_access.h"

namespace weft::processes_test {
namespace {

using test::expect_equal;
using test::names_in;
using test::new_folder;
using test::Training;
using test::TrainingOptions;
using ::testing::ElementsAre;

const TrainingOptions kGrid{.mesh = "data:2 model:2", .layout = "batch:data hidden:model"};

// Runs the body in so many processes that share the mesh of `options`; what the first of them threw is thrown.
void in_processes(int processes, const TrainingOptions& options, const std::function<void(int, Session&)>& body,
                  double deadline_seconds = 600) {
  const Mesh mesh = Mesh::parse(options.mesh);
  const auto errors = test::as_processes(processes, mesh.size(), [&](int process, std::unique_ptr<comm::Wire> wire) {
    Session session = SessionState::open(mesh, std::move(wire), engine_named("reference", "a test"),
                                         {.seed = 7, .deadline_seconds = deadline_seconds, .store = options.store});
    body(process, session);
  });
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

TEST(CheckpointProcesses, WriteTogether) {
  for (const int processes : {2, 4})
    for (const bool async : {true, false}) {
      const std::string folder = new_folder("together");
      std::vector<std::map<std::string, Array>> values(static_cast<std::size_t>(processes));
      in_processes(processes, kGrid, [&](int process, Session& session) {
        Training t(session, kGrid);
        Checkpoints checkpoints(t.session, {.folder = folder, .keep = 2, .async = async});
        for (int i = 0; i < 3; ++i) {
          t.train(1);
          checkpoints.save(t.state());
        }
        checkpoints.wait();
        values[static_cast<std::size_t>(process)] = t.values();
      });
      EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000002", "step-00000003"));
      EXPECT_THAT(names_in(folder + "/step-00000003"),
                  ElementsAre("config.toml", "data.json", "index.json", "shard-0.safetensors", "shard-1.safetensors"));
      Training other;
      other.resume(Checkpoint::open(folder));
      expect_equal(other.values(), values[0]);
    }
}

TEST(CheckpointProcesses, ReadTogether) {
  const std::string folder = new_folder("read");
  Training t({.mesh = "model:8", .layout = "hidden:model"});
  t.train(2);
  Checkpoints checkpoints(t.session, {.folder = folder});
  checkpoints.save(t.state());
  checkpoints.wait();
  const std::map<std::string, Array> want = t.values();
  for (const int processes : {2, 4})
    in_processes(processes, kGrid, [&](int process, Session& session) {
      Training other(session, kGrid);
      other.resume(Checkpoint::open(folder));
      const std::map<std::string, Array> values = other.values();
      if (process == 0) expect_equal(values, want);
    });
}

// One process cannot write its file: all hear of it, and the checkpoint before stays.
TEST(CheckpointProcesses, OneFails) {
  for (const bool async : {true, false}) {
    const std::string folder = new_folder("one_fails");
    std::atomic<int> heard = 0;
    in_processes(2, kGrid, [&](int process, Session& session) {
      Training t(session, kGrid);
      bool is_failing = false;
      const auto at = [&](const std::string& phase) {
        if (is_failing && phase == "mid-shard")
          throw RunError({.code = "test.disk", .what = "the disk is on fire", .where = "a test", .fix = "use water"});
      };
      // With two processes the first has all pieces; with the other layout both have.
      Checkpoints checkpoints(t.session, {.folder = folder, .async = async});
      detail::on_phase(checkpoints, at);
      checkpoints.save({.step = 1});
      checkpoints.wait();
      is_failing = process == 0;
      try {
        checkpoints.save({.step = 2});
        checkpoints.wait();
      } catch (const RunError& error) {
        EXPECT_STREQ(error.what(), "error: the disk is on fire\nwhere: a test\nfix:   use water\ncode:  test.disk");
        ++heard;
      }
      is_failing = false;
      checkpoints.save({.step = 3});
      checkpoints.wait();
    });
    EXPECT_EQ(heard, 2);
    EXPECT_THAT(names_in(folder), ElementsAre(".lock", "latest", "step-00000001", "step-00000003"));
  }
}

// The failing process is not the one that finishes checkpoints.
TEST(CheckpointProcesses, AnotherFails) {
  const TrainingOptions split{.mesh = "model:2", .layout = "hidden:model"};
  const std::string folder = new_folder("another_fails");
  std::atomic<int> heard = 0;
  in_processes(2, split, [&](int process, Session& session) {
    Training t(session, split);
    const auto at = [&](const std::string& phase) {
      if (process == 1 && phase == "mid-shard")
        throw RunError({.code = "test.disk", .what = "the disk is on fire", .where = "a test", .fix = "use water"});
    };
    Checkpoints checkpoints(t.session, {.folder = folder});
    detail::on_phase(checkpoints, at);
    checkpoints.save({.step = 1});
    while (!checkpoints.failure()) std::this_thread::yield();  // the first one is told, too
    const std::string part = process == 0 ? "processor 1 failed to write its part of the checkpoint: " : "";
    EXPECT_RUN_ERROR(std::rethrow_exception(checkpoints.failure()), part + "the disk is on fire");
    try {
      checkpoints.wait();
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(), "error: the disk is on fire\nwhere: a test\nfix:   use water\ncode:  test.disk");
      ++heard;
    }
  });
  EXPECT_EQ(heard, 2);
  EXPECT_THAT(names_in(folder), ElementsAre(".lock"));
}

// Nobody calls wait, and the other process is gone: processor 0 gives up at the deadline.
TEST(CheckpointProcesses, OneNeverComes) {
  const TrainingOptions split{.mesh = "model:2", .layout = "hidden:model"};
  const std::string folder = new_folder("never");
  in_processes(2, split, [&](int process, Session& session) {
    Training t(session, split);
    const auto at = [&](const std::string& phase) {
      if (process == 1 && phase == "save-begun") std::filesystem::remove_all(folder + "/.step-00000001.partial");
    };
    Checkpoints checkpoints(t.session, {.folder = folder, .deadline_seconds = 0.2});
    detail::on_phase(checkpoints, at);
    checkpoints.save({.step = 1});
  });
  EXPECT_FALSE(Checkpoint::latest(folder).has_value());
}

TEST(CheckpointProcesses, LoadFailsInAll) {
  const std::string folder = new_folder("load_fails");
  Training t({.mesh = "model:2", .layout = "hidden:model"});
  Checkpoints checkpoints(t.session, {.folder = folder});
  checkpoints.save({});
  checkpoints.wait();
  const std::string file = folder + "/step-00000000/shard-1.safetensors";
  std::string text = test::content(file);
  text.back() = static_cast<char>(text.back() ^ 1);
  test::write(file, text);
  std::atomic<int> heard = 0;
  in_processes(4, kGrid, [&](int, Session& session) {
    Training other(session, kGrid);
    EXPECT_USER_ERROR(Checkpoint::open(folder).load(other.session), "the file is broken: the bytes of variable '",
                      file);
    ++heard;
  });
  EXPECT_EQ(heard, 4);
}

TEST(CheckpointProcesses, MustSeeTheFolder) {
  const std::string folder = new_folder("seen"), other = new_folder("unseen");
  std::atomic<int> heard = 0;
  in_processes(2, kGrid, [&](int process, Session& session) {
    EXPECT_USER_ERROR(Checkpoints(session, {.folder = process == 0 ? folder : other}),
                      "processor 2 does not see the folder '" + other + "' that processor 0 has opened",
                      "save to a folder that all hosts share, by its absolute path");
    ++heard;
  });
  EXPECT_EQ(heard, 2);
}

// ---- Under mpirun

class MpiCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test::ranks() == 0) GTEST_SKIP() << "WEFT_TEST_WIRE=mpi is not set";
    // One folder for all ranks of the job.
    const char* job = std::getenv("PMIX_NAMESPACE");
    folder = (std::filesystem::path(::testing::TempDir()) /
              ("weft_mpi_checkpoint_" + std::to_string(test::ranks()) + "_" + (job ? job : "alone")))
                 .string();
  }

  static TrainingOptions place() {
    if (test::ranks() == 4) return kGrid;
    return {
        .mesh = "data:" + std::to_string(test::ranks()), .layout = "batch:data", .store = Store::parse("*:data", 3)};
  }

  static Session ranks() {
    return Session(Mesh::parse(place().mesh), wire::mpi(), device::reference(), {.seed = 7, .store = place().store});
  }

  std::string folder;
};

TEST_F(MpiCheckpoint, BetweenRanksAndThreads) {
  Training t(ranks(), place());
  {
    if (wire::process() == 0) std::filesystem::remove_all(folder);
    detail::agree(t.session, nullptr, "for an empty folder");
    Checkpoints checkpoints(t.session, {.folder = folder});
    for (int i = 0; i < 3; ++i) {
      t.train(1);
      checkpoints.save(t.state());
    }
    checkpoints.wait();
  }
  const std::map<std::string, Array> want = t.values();
  const std::vector<double> losses = t.train(2);

  Training threads({.mesh = "data:2 model:4", .layout = "batch:data in:model"});  // in every rank
  threads.resume(Checkpoint::open(folder));
  expect_equal(threads.values(), want);

  Training again(ranks(), place());
  again.resume(Checkpoint::open(folder));
  expect_equal(again.values(), want);
  EXPECT_EQ(again.train(2), losses);

  detail::agree(t.session, nullptr, "for all to have read");
  const std::string other = folder + "_threads";
  if (wire::process() == 0) {
    std::filesystem::remove_all(other);
    Checkpoints checkpoints(threads.session, {.folder = other});
    checkpoints.save(threads.state());
    checkpoints.wait();
  }
  detail::agree(t.session, nullptr, "for the threads' checkpoint");
  Training third(ranks(), place());
  third.resume(Checkpoint::open(other));
  expect_equal(third.values(), want);
}

TEST_F(MpiCheckpoint, ErrorsAreHeardByAll) {
  Session session = ranks();
  std::exception_ptr error;
  if (wire::process() == test::ranks() - 1)
    error = std::make_exception_ptr(UserError({.code = "test.mine", .what = "mine", .where = "here", .fix = "so"}));
  EXPECT_USER_ERROR(detail::agree(session, error, "of a test"),
                    "error: mine\nwhere: here\nfix:   so\ncode:  test.mine");
  detail::agree(session, nullptr, "of a test");
}

}  // namespace
}  // namespace weft::processes_test
