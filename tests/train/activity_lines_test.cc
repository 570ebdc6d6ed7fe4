// Work that takes long is said while it goes on.
#include "train/activity_lines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "weft/detail/activity.h"

namespace weft::train::activity_lines_test {
namespace {

TEST(Activity, IsTheOneThatWasBegunLast) {
  EXPECT_EQ(Activity::current().what, nullptr);
  {
    const Activity whole("compiling");
    EXPECT_STREQ(Activity::current().what, "compiling");
    {
      const Activity values("making initial values", 10);
      Activity::add(3);
      Activity::add(4);
      EXPECT_STREQ(Activity::current().what, "making initial values");
      EXPECT_EQ(Activity::current().done, 7);
      EXPECT_EQ(Activity::current().total, 10);
    }
    EXPECT_STREQ(Activity::current().what, "compiling");
    EXPECT_EQ(Activity::current().total, 0);
  }
  EXPECT_EQ(Activity::current().what, nullptr);
}

TEST(ActivityLines, SayWhatTakesLongAndHowFarItIs) {
  std::promise<std::string> first;
  std::atomic<bool> said = false;
  const ActivityLines lines(
      [&](const std::string& line) {
        if (!said.exchange(true)) first.set_value(line);
      },
      0.001);
  const Activity values("making initial values", 4'900'000'000);
  Activity::add(1'200'000'000);
  EXPECT_NE(first.get_future().get().find("making initial values: "), std::string::npos);
}

}  // namespace
}  // namespace weft::train::activity_lines_test
