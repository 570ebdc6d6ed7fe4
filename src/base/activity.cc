#include "weft/detail/activity.h"

#include <chrono>
#include <mutex>

namespace weft {

namespace {

std::mutex mutex;

std::int64_t now() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

}  // namespace

Activity::StartedStep& Activity::latest() {
  static StartedStep begun;
  return begun;
}

Activity::Activity(const char* what, std::int64_t total) {
  const std::lock_guard lock(mutex);
  before_ = latest();
  latest() = {what, 0, total, now()};
}

Activity::~Activity() {
  const std::lock_guard lock(mutex);
  latest() = before_;
}

void Activity::add(std::int64_t done) {
  const std::lock_guard lock(mutex);
  latest().done += done;
}

Activity::State Activity::current() {
  const std::lock_guard lock(mutex);
  const StartedStep& begun = latest();
  if (!begun.what) return {};
  return {begun.what, begun.done, begun.total, static_cast<double>(now() - begun.begin) * 1e-9};
}

}  // namespace weft
