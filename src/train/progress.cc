#include "train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>

namespace weft::train {

namespace {

constexpr double kBetweenDraws = 0.1;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class... Args>
std::string print(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

std::string numbers_text(const ProgressNumbers& n) {
  std::string text = print("loss %.4f  %s tokens/s", n.loss, count_text(n.tokens_per_second).c_str());
  if (n.flops_per_second > 0) text += "  " + count_text(n.flops_per_second) + "FLOP/s";
  if (n.fraction_of_peak > 0) text += print(" (%.0f %% of peak)", 100 * n.fraction_of_peak);
  return text;
}

int columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  const auto s = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (s >= 3600) return print("%lld h %02lld min", s / 3600, s % 3600 / 60);
  if (s >= 60) return print("%lld min %02lld s", s / 60, s % 60);
  return print("%lld s", s);
}

std::string count_text(double count) {
  constexpr const char* kUnits[] = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  for (; count >= 1000 && unit + 1 < std::size(kUnits); ++unit) count /= 1000;
  return print(count < 10 ? "%.2f %s" : count < 100 ? "%.1f %s" : "%.0f %s", count, kUnits[unit]);
}

Progress::Progress(std::int64_t first, std::int64_t steps, bool shown)
    : first_(first), steps_(steps), shown_(shown), terminal_(shown && isatty(STDERR_FILENO)), begin_(now()) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (terminal_ && drawn_ > 0) std::cerr << "\r\33[K" << std::flush;
}

void Progress::say(const std::string& line) {
  if (!shown_) return;
  clear();
  std::cout << line << std::endl;
}

void Progress::step(const ProgressNumbers& n, bool logged) {
  if (!shown_) return;
  const std::int64_t done = n.step - first_;
  const double left =
      (now() - begin_) / static_cast<double>(std::max<std::int64_t>(1, done)) * static_cast<double>(steps_ - n.step);
  if (logged)
    say(print("step %lld of %lld  ", static_cast<long long>(n.step), static_cast<long long>(steps_)) + numbers_text(n) +
        (n.step < steps_ ? "  " + duration_text(left) + " left" : ""));
  if (!terminal_ || now() - drawn_ < kBetweenDraws) return;
  drawn_ = now();
  const std::string text = print(" %lld/%lld  ", static_cast<long long>(n.step), static_cast<long long>(steps_)) +
                           numbers_text(n) + "  " + duration_text(left) + " left";
  const int width = std::clamp(columns() - static_cast<int>(text.size()) - 3, 0, 40);
  const int full =
      static_cast<int>(width * static_cast<double>(n.step) / static_cast<double>(std::max<std::int64_t>(1, steps_)));
  std::cerr << "\r\33[K"
            << (width > 4 ? "[" + std::string(static_cast<std::size_t>(full), '=') +
                                std::string(static_cast<std::size_t>(width - full), ' ') + "]"
                          : "")
            << text << std::flush;
}

}  // namespace weft::train
