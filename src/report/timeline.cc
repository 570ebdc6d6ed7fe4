// The predicted step and the measured step: what the processor computes, and its collectives.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "report/html.h"
#include "report/sections.h"
#include "report/steps.h"
#include "weft/detail/progress.h"

namespace weft::report {

namespace {

constexpr double kTimeWidth = 1060, kTimeLeft = 84, kTimeRight = 16, kTimeLane = 30, kTimeStrip = 8, kTimeGap = 5;
constexpr double kTimeDrawn = kTimeWidth - kTimeLeft - kTimeRight;
constexpr double kTimeSmallest = 1.2;  // pixels; what is shorter is added up by pixel

using Style = std::function<std::string(const Span&)>;

// Draws spans in a lane. What is too short to see is drawn by pixel: in the style of the largest part, as high as the
// share of the pixel's time.
class Lane {
 public:
  Lane(double y, double height, double scale, Style style)
      : y_(y),
        height_(height),
        scale_(scale),
        style_(std::move(style)),
        pixels_(static_cast<std::size_t>(kTimeDrawn) + 1) {}

  void add(const Span& span) {
    const double begin = span.begin * scale_, width = (span.end - span.begin) * scale_;
    if (width < kTimeSmallest) {
      const auto pixel = std::min(pixels_.size() - 1, static_cast<std::size_t>(std::max(0.0, begin)));
      pixels_[pixel][style_(span)] += width;
      return;
    }
    const std::string title = text(span.kind, " ", span.tensor, ", ", span.phase, ", ",
                                   seconds_text(span.end - span.begin), span.cause.empty() ? "" : "\n" + span.cause);
    long_ += rectangle(kTimeLeft + begin, y_, width, height_, style_(span), title);
  }

  std::string markup() const {
    std::string out = rectangle(kTimeLeft, y_, kTimeDrawn, height_, "lane");
    for (std::size_t i = 0; i < pixels_.size();) {
      const Column column = column_at(i);
      std::size_t end = i + 1;
      while (end < pixels_.size() && column_at(end) == column) ++end;
      if (column.eighths > 0) {
        const double high = height_ * column.eighths / 8;
        out += rectangle(kTimeLeft + static_cast<double>(i), y_ + height_ - high, static_cast<double>(end - i), high,
                         column.style);
      }
      i = end;
    }
    return out + long_;
  }

 private:
  struct Column {
    std::string style;
    int eighths = 0;
    bool operator==(const Column&) const = default;
  };
  Column column_at(std::size_t i) const {
    double sum = 0, most = 0;
    Column column;
    for (const auto& [style, width] : pixels_[i]) {
      sum += width;
      if (width > most) column.style = style;
      most = std::max(most, width);
    }
    column.eighths = sum > 0 ? std::clamp(static_cast<int>(sum * 8 + 0.5), 1, 8) : 0;
    return column;
  }

  double y_, height_, scale_;
  Style style_;
  std::vector<std::map<std::string, double>> pixels_;
  std::string long_;
};

// Neighbours of one phase as one span.
std::vector<Span> phases_of(const Step& step) {
  std::vector<Span> phases;
  for (const Span& span : step.spans) {
    if (span.is_collective || span.phase.empty()) continue;
    if (!phases.empty() && phases.back().phase == span.phase) phases.back().end = span.end;
    else
      phases.push_back(
          {.begin = span.begin, .end = span.end, .kind = "", .phase = span.phase, .tensor = "", .cause = ""});
  }
  return phases;
}

// Three lanes: phases, computation, collectives.
std::string lanes(const Step& step, double y, double scale) {
  Lane phases(y, kTimeStrip, scale, [](const Span& span) { return span.phase; });
  for (const Span& span : phases_of(step)) phases.add(span);
  const double compute_y = y + kTimeStrip + 2, wire_y = compute_y + kTimeLane + kTimeGap;
  Lane compute(compute_y, kTimeLane, scale, style_of), wire(wire_y, kTimeLane, scale, style_of);
  for (const Span& span : step.spans) (span.is_collective ? wire : compute).add(span);
  return phases.markup() + compute.markup() + wire.markup() +
         label(kTimeLeft - 8, compute_y + 20, "computes", "soft-end") +
         label(kTimeLeft - 8, wire_y + 20, "collectives", "soft-end");
}

std::string time_axis(double most, double scale, double y) {
  std::string out;
  for (const double at : ticks(most, 10)) {
    if (at > most) break;
    const double x = kTimeLeft + at * scale;
    out += line(x, y, x, y + 4, "axis") + label(x, y + 17, seconds_text(at), "soft-middle");
  }
  return out;
}

std::string timeline_legend() {
  constexpr std::pair<const char*, const char*> kinds[] = {
      {"product", "products"},    {"attention", "attention"}, {"loss", "loss"},
      {"other", "other kernels"}, {"wire", "collectives"},    {"forward", "forward"},
      {"recompute", "recompute"}, {"backward", "backward"},   {"update", "update"}};
  std::string body;
  double x = 0;
  for (const auto& [style, words] : kinds) {
    body += rectangle(x, 3, 12, 12, style) + label(x + 17, 13, words);
    x += 34 + 7.0 * static_cast<double>(std::string_view(words).size());
  }
  return svg(kTimeWidth, 20, "legend", body);
}

// Seconds by kind and phase.
using Sums = std::map<std::pair<std::string, std::string>, std::pair<int, double>>;

Sums sums_of(const Step& step) {
  Sums sums;
  for (const Span& span : step.spans) {
    auto& [count, seconds] = sums[{span.kind, span.phase}];
    ++count;
    seconds += span.end - span.begin;
  }
  return sums;
}

std::string time_table(const Simulation& s, const std::optional<Step>& measured) {
  std::vector<std::string> heads = {"kind", "phase", "instructions", "predicted", "of the step"};
  const Sums sums = measured ? sums_of(*measured) : Sums();
  if (measured) heads.push_back("measured");
  std::vector<std::vector<Cell>> rows;
  for (const Simulation::Part& part : s.parts) {
    const double share = s.seconds > 0 ? part.seconds / s.seconds : 0;
    std::vector<Cell> row = {{part.kind},
                             {part.phase},
                             number_cell(text(part.count)),
                             number_cell(seconds_text(part.seconds)),
                             {percent(share), share}};
    if (measured) {
      const auto found = sums.find({part.kind, part.phase});
      row.push_back(number_cell(found == sums.end() ? "" : seconds_text(found->second.second)));
    }
    rows.push_back(std::move(row));
  }
  return table(heads, rows);
}

}  // namespace

std::string timeline_body(const StepReport& report) {
  const Simulation& s = report.predicted;
  const Step predicted = step_of(s.trace());
  std::optional<Step> measured;
  if (report.measured && !report.measured->trace.empty()) measured = step_of(report.measured->trace);
  const double most = std::max({s.seconds, measured ? measured->seconds : 0.0, 1e-9}), scale = kTimeDrawn / most;
  const double block = 20 + kTimeStrip + 2 + kTimeLane + kTimeGap + kTimeLane;
  std::string body = label(kTimeLeft, 12, text("predicted on ", s.machine, ", ", seconds_text(s.seconds))) +
                     lanes(predicted, 18, scale);
  double height = block;
  if (measured) {
    body += label(kTimeLeft, height + 24,
                  text("measured, processor 0 of device ", report.measured->device, ", ",
                       seconds_text(measured->seconds))) +
            lanes(*measured, height + 30, scale);
    height += block + 12;
  }
  body += time_axis(most, scale, height + 2);
  std::string words =
      "One processor; all do the same. Instructions too short to see are added up pixel by pixel; the height is their "
      "share "
      "of the time.";
  if (measured) words += " The measured step is the traced one of median time; recording a trace costs a little.";
  return paragraph(words) + timeline_legend() + svg(kTimeWidth, height + 24, "timeline of the step", body) +
         "<h3>Time by kind and phase</h3>\n" + time_table(s, measured);
}

}  // namespace weft::report
