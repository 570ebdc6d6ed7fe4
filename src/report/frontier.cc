// Time against memory, of the candidates that were compiled.
#include <algorithm>
#include <cmath>

#include "report/html.h"
#include "report/sections.h"
#include "weft/detail/progress.h"

namespace weft::report {

namespace {

constexpr double kFrontierWidth = 760, kFrontierHeight = 330, kFrontierLeft = 78, kFrontierRight = 24,
                 kFrontierTop = 14, kFrontierBottom = 44;

// A linear axis from `low` to `high`, with some room around the points.
struct Scale {
  double low = 0, high = 1, from = 0, to = 1;

  Scale(double least, double most, double from, double to) : from(from), to(to) {
    const double room = most > least ? 0.08 * (most - least) : 0.1 * std::max(most, 1e-9);
    low = std::max(0.0, least - room);
    high = most + room;
  }
  double at(double x) const { return from + (x - low) / (high - low) * (to - from); }
  // Round numbers on the axis, as `round` makes them.
  std::vector<double> marks(std::vector<double> (*round)(double, int)) const {
    const std::vector<double> some = round(high - low, 5);
    const double step = some.size() > 1 ? some[1] : high - low;
    std::vector<double> all;
    for (double x = std::ceil(low / step) * step; x <= high; x += step) all.push_back(x);
    return all;
  }
};

std::string circle(double x, double y, double radius, const char* style, const std::string& title) {
  return text("<circle cx=\"", fixed(x, 1), "\" cy=\"", fixed(y, 1), "\" r=\"", fixed(radius, 1), "\" class=\"", style,
              "\"><title>", escaped(title), "</title></circle>\n");
}

std::string frontier_picture(const Plan& plan) {
  std::vector<const PlanChoice*> all;
  for (const std::vector<PlanChoice>* list : {&plan.frontier, &plan.best})
    for (const PlanChoice& choice : *list) all.push_back(&choice);
  const auto [least, most] = std::minmax_element(
      all.begin(), all.end(), [](auto* a, auto* b) { return a->predicted.bytes() < b->predicted.bytes(); });
  const auto [fast, slow] = std::minmax_element(
      all.begin(), all.end(), [](auto* a, auto* b) { return a->predicted.seconds < b->predicted.seconds; });
  const Scale x(static_cast<double>((*least)->predicted.bytes()), static_cast<double>((*most)->predicted.bytes()),
                kFrontierLeft, kFrontierWidth - kFrontierRight);
  const Scale y((*fast)->predicted.seconds, (*slow)->predicted.seconds, kFrontierHeight - kFrontierBottom,
                kFrontierTop);
  std::string body;
  for (const double mark : x.marks(byte_ticks))
    body += line(x.at(mark), kFrontierTop, x.at(mark), kFrontierHeight - kFrontierBottom, "grid") +
            label(x.at(mark), kFrontierHeight - kFrontierBottom + 17, bytes_text(static_cast<std::int64_t>(mark)),
                  "soft-middle");
  for (const double mark : y.marks(ticks))
    body += line(kFrontierLeft, y.at(mark), kFrontierWidth - kFrontierRight, y.at(mark), "grid") +
            label(kFrontierLeft - 8, y.at(mark) + 4, seconds_text(mark), "soft-end");
  body += label((kFrontierLeft + kFrontierWidth - kFrontierRight) / 2, kFrontierHeight - 6, "memory of a processor",
                "soft-middle");
  const auto place = [&](const PlanChoice& c) {
    return std::pair(x.at(static_cast<double>(c.predicted.bytes())), y.at(c.predicted.seconds));
  };
  std::string path;
  for (const PlanChoice& choice : plan.frontier) {
    const auto [px, py] = place(choice);
    path += text(path.empty() ? "M" : "L", fixed(px, 1), " ", fixed(py, 1));
  }
  if (!path.empty()) body += text("<path class=\"frontier\" d=\"", path, "\"/>\n");
  const auto add = [&](const PlanChoice& c, double radius, const char* style) {
    const auto [px, py] = place(c);
    body += circle(px, py, radius, style,
                   text(seconds_text(c.predicted.seconds), ", ", bytes_text(c.predicted.bytes()), "\n", c.text()));
  };
  for (const PlanChoice& choice : plan.frontier) add(choice, 4, "point");
  for (std::size_t i = 1; i < plan.best.size(); ++i) add(plan.best[i], 4, "best");
  add(plan, 6, "chosen");
  const double limit = static_cast<double>(plan.memory_limit);
  if (limit >= x.low && limit <= x.high)
    body += line(x.at(limit), kFrontierTop, x.at(limit), kFrontierHeight - kFrontierBottom, "limit");
  return svg(kFrontierWidth, kFrontierHeight, "time against memory", body);
}

}  // namespace

std::string frontier_body(const StepReport& report) {
  if (!report.plan) return paragraph("No search was made for this page: weft plan makes one.");
  const Plan& plan = *report.plan;
  const std::string key =
      text("<circle cx=\"7\" cy=\"9\" r=\"6\" class=\"chosen\"/>\n", label(20, 13, "chosen"),
           "<circle cx=\"97\" cy=\"9\" r=\"4\" class=\"best\"/>\n", label(108, 13, "other best candidates"),
           "<circle cx=\"261\" cy=\"9\" r=\"4\" class=\"point\"/>\n",
           label(272, 13, "compiled, and no other is better in both"));
  return paragraph(text("Of the ", plan.priced, " candidates that the search compiled",
                        plan.memory_limit > 0 ? text("; the memory limit is ", bytes_text(plan.memory_limit)) : "",
                        ".")) +
         svg(kFrontierWidth, 18, "legend", key) + frontier_picture(plan);
}

}  // namespace weft::report
