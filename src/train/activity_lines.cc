#include "train/activity_lines.h"

#include <algorithm>
#include <chrono>

#include "train/progress.h"
#include "weft/detail/activity.h"

namespace weft::train {

namespace {

constexpr double kBetweenLines = 10;  // of one activity

std::string line_of(const Activity::State& activity) {
  const std::string what = activity.what;
  if (activity.total == 0) return what + " …";
  return what + ": " + count_text(static_cast<double>(activity.done)) + " of " +
         count_text(static_cast<double>(activity.total));
}

}  // namespace

ActivityLines::ActivityLines(std::function<void(const std::string& line)> say, double after_seconds)
    : say_(std::move(say)), after_seconds_(after_seconds), thread_([this] { watch(); }) {}

ActivityLines::~ActivityLines() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  end_.notify_one();
  thread_.join();
}

void ActivityLines::watch() {
  const std::chrono::duration<double> tick(std::min(0.1, after_seconds_));
  std::string said;
  double next = 0;  // seconds of the activity at which it is said again
  std::unique_lock lock(mutex_);
  while (!end_.wait_for(lock, tick, [&] { return ends_; })) {
    const Activity::State activity = Activity::current();
    if (!activity.what || said != activity.what) {
      said = activity.what ? activity.what : "";
      next = after_seconds_;
    }
    if (!activity.what || activity.seconds < next) continue;
    next = activity.seconds + kBetweenLines;
    say_(line_of(activity));
  }
}

}  // namespace weft::train
