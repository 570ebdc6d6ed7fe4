// Activity: a long piece of work of this process and how much of it is done, for processes that wait for it. Threads:
// one thread starts and ends an activity; any thread may read it.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstdint>

namespace weft {

class Activity {
 public:
  // `what`: a literal, "making initial values". `total`: the number that add() counts to; 0: nothing is counted. When
  // this activity ends, the activity before it is current again.
  explicit Activity(const char* what, std::int64_t total = 0);
  ~Activity();
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  static void add(std::int64_t done);  // to the activity that was started last

  struct State {
    const char* what = nullptr;  // null: none
    std::int64_t done = 0, total = 0;
    double seconds = 0;  // since its start
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
