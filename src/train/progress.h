// What a person sees of a run: lines on standard output and, on a terminal, a bar on standard error.
#pragma once

#include <cstdint>
#include <string>

namespace weft::train {

struct ProgressNumbers {
  std::int64_t step = 0;
  double loss = 0, tokens_per_second = 0;
  double flops_per_second = 0, fraction_of_peak = 0;
};

class Progress {
 public:
  // `shown`: whether this process speaks.
  Progress(std::int64_t first, std::int64_t steps, bool shown);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& line);                   // a line of its own
  void step(const ProgressNumbers& now, bool logged);  // moves the bar; `logged`: also leaves a line

 private:
  void clear();

  std::int64_t first_, steps_;
  bool shown_, terminal_;
  double begin_ = 0, drawn_ = 0;
};

std::string duration_text(double seconds);  // "2 h 05 min", "3 min 20 s", "12 s"
std::string count_text(double count);       // "12.3 k", "1.2 M"

}  // namespace weft::train
