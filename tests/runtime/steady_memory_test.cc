// A long run holds no more memory at its end than after its first thousand steps. scripts/check-xla runs this on a plugin:
// every step makes buffers, events and handles there that somebody must destroy.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <iostream>

#include "support/processes.h"

namespace weft::steady_memory_test {
namespace {

constexpr int kFirst = 1'000, kAll = 10'000;
// A handle of 32 bytes that each of 9,000 steps leaves on each of 4 processors is above it.
constexpr std::int64_t kMostGrowth = std::int64_t{1} << 20;

std::int64_t resident_bytes() {
  malloc_trim(0);
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A variable that changes, one that does not, an input, a random draw, collectives, a metric and a fetched value.
TEST(SteadyMemory, TenThousandStepsLeaveNothingBehind) {
  const Dim batch{"batch", 8}, width{"width", 16};
  Graph g;
  const Tensor x = g.input("x", {batch, width});
  const Tensor w = g.variable("w", {width}, init::ones());
  const Tensor still = g.variable("still", {width}, init::constant(2));
  const Tensor loss = mean(dropout(x * w * still, 0.5));
  scalar_metric("loss", loss);
  Session session(Mesh::parse("p:2 q:2"), wire::threads(), test::device_under_test());
  Executable step =
      session.compile(g, Layout::parse("batch:p width:q"),
                      {.fetch = {loss}, .update = {assign_sub(w, 0.01 * gradients({loss}, {w})[0])}, .metrics = true});
  const Array fed({batch, width}, DType::kF32);
  std::int64_t after_first = 0;
  PendingRun before = step.start({{x, fed}});
  for (int i = 1; i < kAll; ++i) {
    PendingRun next = step.start({{x, fed}});
    ASSERT_EQ(before.get().metrics().count("loss"), 1u);
    before = std::move(next);
    if (i == kFirst) after_first = resident_bytes();
  }
  before.get();
  const std::int64_t grown = resident_bytes() - after_first;
  std::cout << "resident after " << kFirst << " steps: " << after_first << " bytes; growth in " << kAll - kFirst
            << " more steps: " << grown << " bytes\n";
  EXPECT_LT(grown, kMostGrowth);
}

}  // namespace
}  // namespace weft::steady_memory_test
