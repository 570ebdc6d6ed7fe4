// What this process is at, for whoever waits for it: an activity that may take long, and how much of it is done.
// Threads: an activity is begun and ended by one thread, and read by any.
#pragma once

#include <cstdint>

namespace weft {

class Activity {
 public:
  // `what`: a literal, "making initial values". `total`: what add() counts to; 0: nothing is counted. What was begun
  // before goes on when this ends.
  explicit Activity(const char* what, std::int64_t total = 0);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  static void add(std::int64_t done);  // of the activity that was begun last

  struct State {
    const char* what = nullptr;  // null: none
    std::int64_t done = 0, total = 0;
    double seconds = 0;  // since it began
  };
  static State current();

 private:
  struct StartedStep {
    const char* what = nullptr;
    std::int64_t done = 0, total = 0, begin = 0;
  };
  static StartedStep& latest();
  StartedStep before_;
};

}  // namespace weft
