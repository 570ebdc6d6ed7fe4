#include "weft/detail/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "base/clock.h"

namespace weft {

namespace {

constexpr double kBetweenDraws = 0.1;
constexpr std::size_t kWidestBar = 40, kLeastBar = 8;

template <class... Args>
std::string print(const char* format, Args... args) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

std::string with_unit(double x, double step, const std::array<const char*, 7>& units) {
  std::size_t unit = 0;
  while (std::abs(x) >= (unit == 0 ? step : step * 0.9995) && unit + 1 < units.size()) {
    x /= step;
    ++unit;
  }
  const char* format = unit == 0 || std::abs(x) >= 999.5 ? "%.0f%s%s" : "%.3g%s%s";
  return print(format, x, *units[unit] ? " " : "", units[unit]);
}

bool is_first_byte(char c) { return (c & 0xC0) != 0x80; }

// The width in characters, not bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), is_first_byte));
}

std::string cut(const std::string& text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t seen = 0; end < text.size(); ++end)
    if (is_first_byte(text[end]) && ++seen > columns) break;
  return text.substr(0, end);
}

std::string joined(const std::vector<LinePart>& parts) {
  std::string text;
  for (const LinePart& part : parts) text += (text.empty() ? "" : "  ") + part.text;
  return text;
}

std::string bar(double fraction, std::size_t room) {
  const std::size_t width = std::min(kWidestBar, room - 2);
  const auto full = static_cast<std::size_t>(std::clamp(fraction, 0.0, 1.0) * static_cast<double>(width));
  return "[" + std::string(full, '=') + std::string(width - full, ' ') + "]";
}

}  // namespace

std::string count_text(double count) { return with_unit(count, 1000, {"", "k", "M", "G", "T", "P", "E"}); }

std::string bytes_text(std::int64_t bytes) {
  return with_unit(static_cast<double>(bytes), 1024, {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string seconds_text(double seconds) {
  if (seconds == 0 || seconds >= 0.9995) return print(seconds >= 999.5 ? "%.0f s" : "%.3g s", seconds);
  if (seconds >= 0.9995e-3) return print("%.3g ms", seconds * 1e3);
  return print("%.3g us", seconds * 1e6);
}

std::string duration_text(double seconds) {
  const auto s = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (s >= 3600) return print("%lld h %02lld min", s / 3600, s % 3600 / 60);
  if (s >= 60) return print("%lld min %02lld s", s / 60, s % 60);
  return print("%lld s", s);
}

std::string fitted(const std::vector<LinePart>& parts, std::size_t columns) {
  std::vector<LinePart> kept = parts;
  std::erase_if(kept, [](const LinePart& part) { return part.text.empty(); });
  while (width_of(joined(kept)) > columns) {
    // The last part of the highest rank.
    const auto worst = std::max_element(kept.rbegin(), kept.rend(),
                                        [](const LinePart& a, const LinePart& b) { return a.rank < b.rank; });
    if (worst->rank == 0) break;
    kept.erase(std::next(worst).base());
  }
  return cut(joined(kept), columns);
}

std::size_t terminal_columns(int descriptor) {
  const char* kind = std::getenv("TERM");
  if (!isatty(descriptor) || (kind && std::string(kind) == "dumb")) return 0;
  winsize size{};
  return ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

ProgressLine::ProgressLine(bool shown, double plain_seconds)
    : shown_(shown),
      terminal_(shown && terminal_columns(STDERR_FILENO) > 0),
      plain_seconds_(plain_seconds),
      drawn_at_(terminal_ ? 0 : seconds_now()) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (is_drawn_) std::cerr << "\r\33[K" << std::flush;
  is_drawn_ = false;
}

void ProgressLine::say(const std::string& line) {
  if (!shown_) return;
  clear();
  std::cout << line << std::endl;
}

void ProgressLine::draw(double fraction, const std::vector<LinePart>& parts) {
  if (!shown_ || (!terminal_ && plain_seconds_ == 0)) return;
  if (seconds_now() - drawn_at_ < (terminal_ ? kBetweenDraws : plain_seconds_)) return;
  drawn_at_ = seconds_now();
  if (!terminal_) {
    std::cerr << joined(parts) << std::endl;
    return;
  }
  const std::size_t columns = terminal_columns(STDERR_FILENO);
  const std::size_t room = columns > 1 ? columns - 1 : 80;  // the last column would wrap
  std::string text = fitted(parts, room);
  const std::size_t width = width_of(text);
  if (width + kLeastBar + 1 <= room) text = bar(fraction, room - width - 1) + " " + text;
  std::cerr << "\r\33[K" << text << std::flush;
  is_drawn_ = true;
}

}  // namespace weft
