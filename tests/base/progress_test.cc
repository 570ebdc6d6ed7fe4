#include "weft/detail/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::progress_test {
namespace {

TEST(ProgressText, CountsHaveUnits) {
  EXPECT_EQ(count_text(0), "0");
  EXPECT_EQ(count_text(738), "738");
  EXPECT_EQ(count_text(7'301'376), "7.3 M");
  EXPECT_EQ(count_text(4.9e9), "4.9 G");
  EXPECT_EQ(count_text(999'600), "1 M");  // not "1e+03 k"
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(1010 << 10), "1010 KiB");
  EXPECT_EQ(bytes_text(std::int64_t{3} << 30), "3 GiB");
}

TEST(ProgressText, Durations) {
  EXPECT_EQ(duration_text(-1), "0 s");
  EXPECT_EQ(duration_text(12.4), "12 s");
  EXPECT_EQ(duration_text(200), "3 min 20 s");
  EXPECT_EQ(duration_text(7500), "2 h 05 min");
  EXPECT_EQ(seconds_text(0), "0 s");
  EXPECT_EQ(seconds_text(45.6e-6), "45.6 us");
  EXPECT_EQ(seconds_text(0.01234), "12.3 ms");
  EXPECT_EQ(seconds_text(0.9996), "1 s");
  EXPECT_EQ(seconds_text(1.5432), "1.54 s");
  EXPECT_EQ(seconds_text(2000), "2000 s");
}

TEST(ProgressText, TheLeastImportantPartsAreLeftOutFirst) {
  const std::vector<LinePart> parts = {
      {"step 10 of 99", 0}, {"", 0}, {"loss 4.1", 1}, {"5 k tokens/s", 3}, {"9 s left", 2}};
  EXPECT_EQ(fitted(parts, 80), "step 10 of 99  loss 4.1  5 k tokens/s  9 s left");
  EXPECT_EQ(fitted(parts, 47), "step 10 of 99  loss 4.1  5 k tokens/s  9 s left");
  EXPECT_EQ(fitted(parts, 46), "step 10 of 99  loss 4.1  9 s left");
  EXPECT_EQ(fitted(parts, 32), "step 10 of 99  loss 4.1");
  EXPECT_EQ(fitted(parts, 20), "step 10 of 99");
  EXPECT_EQ(fitted(parts, 7), "step 10");
  EXPECT_EQ(fitted({{"a", 1}, {"b", 1}}, 2), "a");                           // of equal ones the last goes
  EXPECT_EQ(fitted({{"\xC3\xA4\xC3\xB6\xC3\xBC"}}, 2), "\xC3\xA4\xC3\xB6");  // columns, not bytes
}

// Nothing but plain lines where standard error is no terminal.
TEST(ProgressText, WithoutATerminalLinesArePlain) {
  if (terminal_columns(2) > 0) GTEST_SKIP() << "standard error is a terminal";
  ::testing::internal::CaptureStderr();
  {
    ProgressLine line(true, 1e-9), silent(false, 1e-9), seldom(true, 1000);
    for (ProgressLine* each : {&line, &silent, &seldom}) each->draw(0.5, {{"half"}, {"done", 1}});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "half  done\n");
}

}  // namespace
}  // namespace weft::progress_test
