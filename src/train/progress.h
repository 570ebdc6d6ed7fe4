// The output of a run for people: lines on standard output and, on a terminal, a progress line on standard error.
#pragma once

#include <cstdint>
#include <string>

#include "weft/detail/progress.h"

namespace weft::train {

// The steady clock in seconds.
double seconds_now();

struct ProgressNumbers {
  std::int64_t step = 0;
  double loss = 0, tokens_per_second = 0;
  double flops_per_second = 0, fraction_of_peak = 0;
};

class Progress {
 public:
  // `shown`: whether this process speaks.
  Progress(std::int64_t steps, bool shown);

  void say(const std::string& line) { line_.say(line); }  // a line of its own
  void say(const std::vector<LinePart>& parts);           // the same; on a terminal, what fits
  void warn(const std::string& text);                     // on standard error, also if nothing else is shown
  void step(const ProgressNumbers& now, bool logged);     // moves the progress line; `logged`: also leaves a line

 private:
  std::int64_t steps_, first_ = 0;  // first: the first that was shown
  double begin_ = 0;                // when it was
  ProgressLine line_;
};

// The parts of a step's line, the most important of the lowest rank. `left`: seconds to the end; below 0: not said.
std::vector<LinePart> step_parts(const ProgressNumbers& numbers, std::int64_t steps, double left);

}  // namespace weft::train
