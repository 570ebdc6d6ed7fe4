#include "train/progress.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

namespace weft::train {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

namespace {

std::string loss_text(double loss) {
  char text[64];
  std::snprintf(text, sizeof text, "loss %.4f", loss);
  return text;
}

}  // namespace

std::vector<LinePart> step_parts(const ProgressNumbers& n, std::int64_t steps, double left) {
  std::vector<LinePart> parts = {{"step " + std::to_string(n.step) + " of " + std::to_string(steps), 0},
                                 {loss_text(n.loss), 0},
                                 {count_text(n.tokens_per_second) + " tokens/s", 2}};
  if (n.flops_per_second > 0) parts.push_back({count_text(n.flops_per_second) + "FLOP/s", 3});
  if (n.fraction_of_peak > 0) parts.push_back({count_text(100 * n.fraction_of_peak) + " % of peak", 4});
  if (left >= 0) parts.push_back({duration_text(left) + " left", 1});
  return parts;
}

Progress::Progress(std::int64_t steps, bool shown) : steps_(steps), line_(shown, 0) {}

void Progress::say(const std::vector<LinePart>& parts) {
  const std::size_t columns = terminal_columns(STDOUT_FILENO);
  say(fitted(parts, columns > 0 ? columns : std::string::npos));
}

void Progress::warn(const std::string& text) {
  line_.clear();
  std::cerr << "warning: " << text << std::endl;
}

void Progress::step(const ProgressNumbers& n, bool logged) {
  if (begin_ == 0) {  // the first step has the preparations in it
    begin_ = seconds_now();
    first_ = n.step;
  }
  const auto made = static_cast<double>(n.step - first_);
  const double left = made == 0 ? -1 : (seconds_now() - begin_) / made * static_cast<double>(steps_ - n.step);
  if (logged) say(step_parts(n, steps_, n.step < steps_ ? left : -1));
  line_.draw(static_cast<double>(n.step) / static_cast<double>(std::max<std::int64_t>(1, steps_)),
             step_parts(n, steps_, left));
}

}  // namespace weft::train
