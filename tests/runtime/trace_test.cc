// TraceLog: what it takes, what it leaves, and its numbers there and back.
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include <atomic>

#include "runtime/host/host_clock.h"
#include "runtime/host/workers.h"

namespace weft::trace_test {
namespace {

TraceLanes read(const TraceLog& log) {
  const std::vector<std::int64_t> numbers = log.packed();
  EXPECT_EQ(static_cast<std::int64_t>(numbers.size()), log.numbers());
  return log.unpacked(numbers.data());
}

TEST(TraceLog, TakesTheRunsThatItCovers) {
  const TraceLog log(1, 4, 3, 2);
  EXPECT_FALSE(log.covers(2));
  EXPECT_TRUE(log.covers(3));
  EXPECT_TRUE(log.covers(4));
  EXPECT_FALSE(log.covers(5));
}

TEST(TraceLog, AVeryLongProgramGetsFewerRunsButWholeOnes) {
  const TraceLog log(1, 200'000, 0, 10);
  EXPECT_TRUE(log.covers(1));
  EXPECT_FALSE(log.covers(2));
  EXPECT_TRUE(TraceLog(1, 10'000'000, 0, 10).covers(0));
}

TEST(TraceLog, NotesStepsInsideOfEachOther) {
  TraceLog log(1, 8, 0, 1);
  log.enter(0);
  {
    const TraceSpan outer(&log, 5);
    const TraceSpan inner(&log, 2);
  }
  const TraceSpan nowhere(nullptr, 1);
  const TraceLanes lanes = read(log);
  ASSERT_EQ(lanes.steps.size(), 2u);
  EXPECT_EQ(lanes.steps[0].what, 2);
  EXPECT_EQ(lanes.steps[1].what, 5);
  EXPECT_LE(lanes.steps[1].begin, lanes.steps[0].begin);
  EXPECT_GE(lanes.steps[1].end, lanes.steps[0].end);
}

TEST(TraceLog, NeverWritesBeyondItsRecords) {
  TraceLog log(1, 1, 0, 1);
  for (int i = 0; i < 100; ++i) log.add(0, i, i + 1);
  EXPECT_EQ(read(log).steps.size(), 4u);
}

// A worker has at most one record of a step, however many jobs the step is made of; the processor's thread has one of each.
TEST(TraceLog, WorkersNoteTheirShares) {
  Workers workers(3);
  TraceLog log(workers.size(), 4, 0, 1);
  workers.trace_to(&log);
  std::atomic<int> done = 0;
  for (const int what : {7, 8}) {
    const TraceSpan span(&log, what);
    for (int job = 0; job < 2; ++job) workers.run([&](int) { ++done; });
  }
  workers.trace_to(nullptr);
  workers.run([&](int) { ++done; });
  EXPECT_EQ(done, 15);
  const TraceLanes lanes = read(log);
  ASSERT_EQ(lanes.shares.size(), 3u);
  EXPECT_EQ(lanes.shares[0].size(), 2u);
  for (const std::vector<TraceRecord>& shares : lanes.shares) {
    for (std::size_t step = 0; step < shares.size(); ++step) {
      const TraceRecord& record = shares[step];
      ASSERT_TRUE(record.what == 7 || record.what == 8);
      EXPECT_TRUE(step == 0 || shares[step - 1].what < record.what);
      const TraceRecord& whole = lanes.steps[static_cast<std::size_t>(record.what - 7)];
      EXPECT_LE(record.busy, record.end - record.begin);
      EXPECT_GE(record.begin, whole.begin);
      EXPECT_LE(record.end, whole.end);
    }
  }
}

}  // namespace
}  // namespace weft::trace_test
