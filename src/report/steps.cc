#include "report/steps.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "weft/error.h"

namespace weft::report {

namespace {

using Json = nlohmann::json;

// An event of the first processor's main thread, or of the predicted wire.
struct Event {
  std::int64_t step = 0;
  std::string use;
  Span span;
};

Event event_of(const Json& json) {
  const Json& args = json.at("args");
  Event event{.step = args.value("step", std::int64_t{0}), .use = args.value("use", ""), .span = {}};
  event.span.begin = json.at("ts").get<double>() * 1e-6;
  event.span.end = event.span.begin + json.at("dur").get<double>() * 1e-6;
  event.span.kind = args.value("kind", "");
  event.span.phase = args.value("phase", "");
  event.span.tensor = args.value("tensor", "");
  event.span.cause = args.value("cause", "");
  event.span.is_collective = event.use == "collective";
  return event;
}

std::vector<Event> events_of(const std::string& trace) {
  const Json all = Json::parse(trace, nullptr, false);
  if (all.is_discarded() || !all.is_object() || !all.contains("traceEvents") ||
      !all.value("otherData", Json::object()).contains("weft_trace"))
    throw UserError({.code = "report.not-a-trace",
                     .what = "the measured trace of a report is not a trace of Weft",
                     .where = "StepReport::measured",
                     .fix = "give the text of Executable::trace, or leave it empty"});
  std::vector<Event> events;
  for (const Json& json : all.at("traceEvents"))
    if (json.value("ph", "") == "X" && json.value("pid", 0) == 0 && json.at("args").value("use", "") != "share")
      events.push_back(event_of(json));
  return events;
}

}  // namespace

Step step_of(const std::string& trace) {
  const std::vector<Event> events = events_of(trace);
  std::map<std::int64_t, Span> calls;
  for (const Event& event : events)
    if (event.use == "call") calls[event.step] = event.span;
  std::vector<std::pair<double, std::int64_t>> order;
  for (const auto& [number, span] : calls) order.emplace_back(span.end - span.begin, number);
  std::sort(order.begin(), order.end());
  Step step;
  if (order.empty()) return step;
  const auto [seconds, number] = order[order.size() / 2];
  step.seconds = seconds;
  const double begin = calls[number].begin;
  for (const Event& event : events) {
    if (event.step != number || (event.use != "kernel" && event.use != "collective")) continue;
    if (event.span.kind == "done") continue;  // a wait, of the predicted step
    step.spans.push_back(event.span);
    step.spans.back().begin -= begin;
    step.spans.back().end -= begin;
  }
  std::stable_sort(step.spans.begin(), step.spans.end(),
                   [](const Span& a, const Span& b) { return a.begin < b.begin; });
  return step;
}

std::string style_of(const Span& span) {
  if (span.is_collective) return "wire";
  if (span.kind == "contract" || span.kind == "convolve") return "product";
  if (span.kind.starts_with("attend")) return "attention";
  if (span.kind.starts_with("xent")) return "loss";
  return "other";
}

}  // namespace weft::report
