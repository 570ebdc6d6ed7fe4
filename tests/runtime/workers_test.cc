// The threads of one processor: every share is run once, whichever of them the system lets run.
#include "runtime/host/workers.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/expect_error.h"

namespace weft::workers_test {
namespace {

TEST(Workers, RunEveryShareOnce) {
  for (const bool spins : {false, true}) {
    Workers workers(3, spins);
    std::vector<int> runs(3);
    for (int job = 0; job < 2000; ++job) workers.run([&](int share) { ++runs[static_cast<std::size_t>(share)]; });
    EXPECT_EQ(runs, std::vector<int>(3, 2000));
  }
}

TEST(Workers, ThrowWhatTheFirstShareThrows) {
  Workers workers(3);
  for (int job = 0; job < 100; ++job) {
    try {
      workers.run([](int share) {
        if (share > 0) throw std::runtime_error(share == 1 ? "one" : "two");
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "one");
    }
    workers.run([](int) {});  // nothing is left of it
  }
}

// A worker may get its first share in any step, so its thread is ready before the first.
std::atomic<int> prepared_threads = 0;

TEST(Workers, PrepareEveryThreadBeforeTheFirstJob) {
  for (const int size : {1, 2, 5}) {
    prepared_threads = 0;
    const Workers workers(size, true, [] { ++prepared_threads; });
    EXPECT_EQ(prepared_threads, size);
  }
}

TEST(Workers, SayThatTheSystemGivesNoThread) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a process that gets no thread";
#endif
  pthread_attr_t before, huge;
  pthread_getattr_default_np(&before);
  pthread_attr_init(&huge);
  pthread_attr_setstacksize(&huge, std::size_t{1} << 46);  // the address space has no room for two such stacks
  pthread_setattr_default_np(&huge);
  EXPECT_RUN_ERROR(Workers(4), "the system gives no thread for worker ", " of 4", "Session",
                   "ask for fewer workers, or raise the limit on threads");
  pthread_setattr_default_np(&before);
  pthread_attr_destroy(&huge);
  pthread_attr_destroy(&before);
  Workers workers(4);
  std::atomic<int> runs = 0;
  workers.run([&](int) { ++runs; });
  EXPECT_EQ(runs, 4);
}

// A handler that holds its thread, as a busy system would, until the test lets it go.
sem_t held, released;
void hold_thread(int) {
  sem_post(&held);
  while (sem_wait(&released) != 0) {
  }
}

TEST(Workers, DoNotWaitForAThreadThatIsNotLetRun) {
  sem_init(&held, 0, 0);
  sem_init(&released, 0, 0);
  struct sigaction hold = {}, before = {};
  hold.sa_handler = hold_thread;
  sigaction(SIGUSR1, &hold, &before);
  {
    Workers workers(3);
    const pthread_t me = pthread_self();
    std::atomic<bool> found = false;
    pthread_t other = me;
    while (!found) {  // until a thread other than this one has come to run a share
      workers.run([&](int share) {
        if (share == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // the others may come first
        if (share != 1 || pthread_equal(pthread_self(), me)) return;
        other = pthread_self();
        found = true;
      });
    }
    pthread_kill(other, SIGUSR1);
    while (sem_wait(&held) != 0) {
    }
    std::vector<int> runs(3);
    for (int job = 0; job < 1000; ++job) workers.run([&](int share) { ++runs[static_cast<std::size_t>(share)]; });
    EXPECT_EQ(runs, std::vector<int>(3, 1000));
    sem_post(&released);
    for (int job = 0; job < 1000; ++job) workers.run([&](int share) { ++runs[static_cast<std::size_t>(share)]; });
    EXPECT_EQ(runs, std::vector<int>(3, 2000));
  }
  sigaction(SIGUSR1, &before, nullptr);
}

constexpr std::int64_t kMillisecond = 1000 * 1000;

TEST(SharingBalance, SharesWhileSharingSavesTime) {
  SharingBalance balance(2);
  std::int64_t now = 0;
  for (int job = 0; job < 1000; ++job) {
    balance.add(10 * kMillisecond, 6 * kMillisecond, now += 16 * kMillisecond);
    ASSERT_FALSE(balance.alone(now));
  }
}

TEST(SharingBalance, WorksAloneForAWhileAfterLosses) {
  SharingBalance balance(2);
  std::int64_t now = 1000 * kMillisecond;
  for (int job = 0; job < 30; ++job) balance.add(kMillisecond / 10, 0, now += kMillisecond / 10);
  EXPECT_FALSE(balance.alone(now));
  balance.add(kMillisecond / 10, 12 * kMillisecond, now += 12 * kMillisecond);
  EXPECT_TRUE(balance.alone(now));
  EXPECT_TRUE(balance.alone(now + 60 * kMillisecond));
  EXPECT_FALSE(balance.alone(now + 100 * kMillisecond));  // it tries again
  now += 100 * kMillisecond;
  balance.add(kMillisecond, 60000 * kMillisecond, now += 60001 * kMillisecond);  // the process was stopped
  EXPECT_TRUE(balance.alone(now));
  EXPECT_FALSE(balance.alone(now + 1000 * kMillisecond));
}

// More workers save more: what two lose by sharing, eight do not.
TEST(SharingBalance, CountsWhatEveryWorkerSaves) {
  SharingBalance two(2), eight(8);
  two.add(10, 30, 100);
  eight.add(10, 30, 100);
  EXPECT_TRUE(two.alone(100));
  EXPECT_FALSE(eight.alone(100));
}

}  // namespace
}  // namespace weft::workers_test
