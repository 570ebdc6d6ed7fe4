// Says what a process is at, for a person who waits: a line for every activity that takes over two seconds.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace weft::train {

class ActivityLines {
 public:
  // `say` is called by a thread of its own, until this object goes.
  explicit ActivityLines(std::function<void(const std::string& line)> say, double after_seconds = 2);
  ~ActivityLines();
  ActivityLines(const ActivityLines&) = delete;
  ActivityLines& operator=(const ActivityLines&) = delete;

 private:
  void watch();

  std::function<void(const std::string& line)> say_;
  double after_seconds_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace weft::train
