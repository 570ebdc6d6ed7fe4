// Memory over the step: variables, the arena in use, and of it the workspaces of kernels.
#include <algorithm>

#include "report/html.h"
#include "report/sections.h"
#include "weft/detail/progress.h"

namespace weft::report {

namespace {

constexpr double kMemoryWidth = 1060, kMemoryHeight = 260, kMemoryLeft = 74, kMemoryRight = 16, kMemoryTop = 14,
                 kMemoryBottom = 34;
constexpr int kMemoryColumns = static_cast<int>(kMemoryWidth - kMemoryLeft - kMemoryRight);

// The most that is in use during each column of pixels.
struct Columns {
  std::vector<double> arena = std::vector<double>(kMemoryColumns, 0),
                      workspace = std::vector<double>(kMemoryColumns, 0);

  explicit Columns(const Simulation& s) {
    for (std::size_t i = 0; i < s.memory.size(); ++i) {
      const auto& point = s.memory[i];
      const double end = i + 1 < s.memory.size() ? s.memory[i + 1].seconds : s.seconds;
      const int first = column(point.seconds, s), last = std::max(first, column(end, s) - (end < s.seconds ? 1 : 0));
      for (int c = first; c <= last; ++c) {
        auto& used = arena[static_cast<std::size_t>(c)];
        auto& work = workspace[static_cast<std::size_t>(c)];
        used = std::max(used, static_cast<double>(point.bytes));
        work = std::max(work, static_cast<double>(point.workspace_bytes));
      }
    }
  }
  static int column(double seconds, const Simulation& s) {
    const double share = s.seconds > 0 ? seconds / s.seconds : 0;
    return std::clamp(static_cast<int>(share * kMemoryColumns), 0, kMemoryColumns - 1);
  }
};

// The area between two heights, by column.
template <class Low, class High>
std::string area(const char* style, double scale, Low low, High high) {
  const auto y = [&](double bytes) { return fixed(kMemoryHeight - kMemoryBottom - bytes * scale, 1); };
  std::string path = text("M", kMemoryLeft, " ", y(high(0)));
  for (int c = 0; c < kMemoryColumns; ++c) {
    if (c > 0 && y(high(c)) != y(high(c - 1))) path += text("V", y(high(c)));
    if (c + 1 == kMemoryColumns || y(high(c)) != y(high(c + 1))) path += text("H", fixed(kMemoryLeft + c + 1, 0));
  }
  path += text("V", y(low(kMemoryColumns - 1)));
  for (int c = kMemoryColumns - 1; c >= 0; --c) {
    if (c + 1 < kMemoryColumns && y(low(c)) != y(low(c + 1))) path += text("V", y(low(c)));
    if (c == 0 || y(low(c)) != y(low(c - 1))) path += text("H", fixed(kMemoryLeft + c, 0));
  }
  return text("<path class=\"", style, "\" d=\"", path, "z\"/>\n");
}

std::string memory_axes(double most, double scale, double seconds) {
  std::string out;
  for (const double bytes : byte_ticks(most, 4)) {
    const double y = kMemoryHeight - kMemoryBottom - bytes * scale;
    if (y < kMemoryTop - 8) continue;
    out += line(kMemoryLeft, y, kMemoryWidth - kMemoryRight, y, "grid") +
           label(kMemoryLeft - 8, y + 4, bytes_text(static_cast<std::int64_t>(bytes)), "soft-end");
  }
  for (const double at : ticks(seconds, 8)) {
    if (at > seconds) break;
    const double x = kMemoryLeft + at / seconds * kMemoryColumns;
    out += line(x, kMemoryHeight - kMemoryBottom, x, kMemoryHeight - kMemoryBottom + 4, "axis") +
           label(x, kMemoryHeight - kMemoryBottom + 18, seconds_text(at), "soft-middle");
  }
  return out;
}

std::string memory_picture(const StepReport& report) {
  const Simulation& s = report.predicted;
  const double variables = static_cast<double>(s.variable_bytes), arena = static_cast<double>(s.arena_bytes);
  const double limit = static_cast<double>(s.memory_bytes), allocated = variables + arena;
  const bool shows_limit = limit > 0 && limit < 2.5 * allocated;
  const double most = std::max({allocated, shows_limit ? limit : 0.0, 1.0}) * 1.04;
  const double scale = (kMemoryHeight - kMemoryTop - kMemoryBottom) / most;
  const Columns columns(s);
  const auto used = [&](int c) { return variables + columns.arena[static_cast<std::size_t>(c)]; };
  const auto work = [&](int c) { return used(c) - columns.workspace[static_cast<std::size_t>(c)]; };
  std::string body = memory_axes(most, scale, s.seconds);
  body += area(
      "variables", scale, [](int) { return 0.0; }, [&](int) { return variables; });
  body += area(
              "arena", scale, [&](int) { return variables; }, work) +
          area("workspace", scale, work, used);
  const auto level = [&](double bytes, const char* style) {
    const double y = kMemoryHeight - kMemoryBottom - bytes * scale;
    return line(kMemoryLeft, y, kMemoryWidth - kMemoryRight, y, style);
  };
  body += level(allocated, "allocated");
  if (shows_limit) body += level(limit, "limit");
  return svg(kMemoryWidth, kMemoryHeight, "memory of a processor over the step", body);
}

std::string memory_legend(bool shows_limit) {
  std::string body = rectangle(0, 3, 12, 12, "variables") + label(18, 13, "variables") +
                     rectangle(106, 3, 12, 12, "arena") + label(124, 13, "arena in use") +
                     rectangle(226, 3, 12, 12, "workspace") + label(244, 13, "workspaces of kernels") +
                     line(400, 9, 426, 9, "allocated") + label(432, 13, "allocated");
  if (shows_limit) body += line(516, 9, 542, 9, "limit") + label(548, 13, "the processor's memory");
  return svg(kMemoryWidth, 18, "legend", body);
}

}  // namespace

std::string memory_body(const StepReport& report) {
  const Simulation& s = report.predicted;
  const std::int64_t bytes = s.variable_bytes + s.arena_bytes;
  std::int64_t workspace = 0;
  for (const Simulation::MemoryPoint& point : s.memory) workspace = std::max(workspace, point.workspace_bytes);
  std::string words =
      text("A run allocates ", bytes_text(bytes), " on each processor: variables ", bytes_text(s.variable_bytes),
           ", arena ", bytes_text(s.arena_bytes), ". Of the arena at most ", bytes_text(s.peak_bytes),
           " are in use at once", workspace > 0 ? text(", workspaces up to ", bytes_text(workspace)) : "", ".");
  if (s.memory_bytes > 0)
    words +=
        text(" The processor has ", bytes_text(s.memory_bytes), bytes > s.memory_bytes ? ": it does not fit." : ".");
  const bool shows_limit = s.memory_bytes > 0 && static_cast<double>(s.memory_bytes) < 2.5 * static_cast<double>(bytes);
  return paragraph(words) + memory_legend(shows_limit) + memory_picture(report);
}

}  // namespace weft::report
