#include "probes.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "weft/explain.h"
#include "weft/ops.h"

namespace weft::tools {

namespace {

constexpr int kWarmUp = 2;

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// The trace of some steps, after a warm-up.
nlohmann::json traced(const Graph& graph, const Layout& layout, CompileOptions options, const ProbePlace& place,
                      int runs) {
  options.trace = {.first = kWarmUp, .steps = runs};
  Session session(place.mesh, place.wire, place.device);
  Executable step = session.compile(graph, layout, options);
  for (int i = 0; i < kWarmUp + runs; ++i) step.run();
  return nlohmann::json::parse(step.trace(Machine::uniform(1, 1)));
}

// Seconds of a step that adds one to each of some small variables, of at least so many elements: the median of many.
double small_step_seconds(const ProbePlace& place, int variables, std::int64_t elements) {
  constexpr int kRuns = 200;
  Graph graph;
  Updates updates;
  for (int i = 0; i < variables; ++i) {  // of unlike sizes, so that no two are one instruction
    const Tensor x = graph.variable("x" + std::to_string(i), {{"element", elements + i}});
    updates.push_back(assign(x, x + 1.0));
  }
  Session session(place.mesh, place.wire, place.device);
  Executable step = session.compile(graph, Layout(), {.update = updates});
  std::vector<double> all;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(all);
}

}  // namespace

std::map<std::string, ProbeTime> time_probes(const Graph& graph, const CompileOptions& options, const ProbePlace& place,
                                             const std::string& kind, int runs) {
  const nlohmann::json trace = traced(graph, Layout(), options, place, runs);
  std::map<std::string, std::map<std::int64_t, double>> longest;  // by scope and step
  std::map<std::string, ProbeTime> times;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0) continue;
    const auto& args = event.at("args");
    if (args.at("use") != "kernel" || !(kind.empty() || args.at("kind") == kind)) continue;
    const std::string tensor = args.at("tensor");
    const std::string scope = tensor.substr(0, tensor.find('/'));
    const double seconds = event.at("dur").get<double>() * 1e-6;
    double& most = longest[scope][args.at("step").get<std::int64_t>()];
    if (seconds < most) continue;
    most = seconds;
    if (args.contains("flops")) times[scope].flops = args.at("flops"), times[scope].bytes = args.at("bytes");
  }
  for (const auto& [scope, by_step] : longest) {
    std::vector<double> all;
    for (const auto& [number, seconds] : by_step) all.push_back(seconds);
    times[scope].seconds = median(all);
  }
  return times;
}

MeetingTime meeting_time(const ProbePlace& place, int runs) {
  constexpr int kMeetings = 16;
  const int processors = place.mesh.size();
  const Dim rows{"m", 128}, columns{"n", 128}, summed{"k", 3072 * processors};
  static_assert(128 * 128 * sizeof(float) == kMeetingBytes);
  Graph graph;
  const Tensor x = graph.variable("x", {rows, summed}, init::normal(1));
  const Tensor y = graph.variable("y", {summed, columns}, init::normal(1));
  Tensor last = reduce_sum(x * 0.0);
  for (int i = 0; i < kMeetings; ++i) {  // each after the last, so that none is merged with it
    const Tensor product = einsum({x + last, y}, {rows, columns});
    last = reduce_sum(product * product) * 1e-30;
  }
  const nlohmann::json trace =
      traced(graph, Layout::parse("k:" + place.mesh.axes()[0].name), {.fetch = {last}}, place, runs);
  std::map<bool, std::map<std::int64_t, double>> sums;  // of collectives or not, by step, of all processors together
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const std::string use = event.at("args").at("use");
    if (use != "collective" && use != "kernel") continue;
    sums[use == "collective"][event.at("args").at("step").get<std::int64_t>()] += event.at("dur").get<double>() * 1e-6;
  }
  const auto each = [&](bool is_collective) {
    std::vector<double> all;
    for (const auto& [number, seconds] : sums[is_collective]) all.push_back(seconds);
    return median(all) / (kMeetings * processors);
  };
  return {.collective = each(true), .work = each(false)};
}

std::map<std::string, double> collective_seconds(const ProbePlace& place, std::int64_t bytes, int runs) {
  const std::int64_t processors = place.mesh.size(), elements = bytes / static_cast<std::int64_t>(sizeof(float));
  const Dim part{"part", processors}, whole{"whole", elements}, split{"split", elements};
  Graph graph;
  const Tensor parts = graph.variable("parts", {part, whole}), shards = graph.variable("shards", {split});
  const Dim rows{"rows", processors}, columns{"columns", elements};
  const Tensor table = graph.variable("table", {rows, columns});
  const std::string axis = place.mesh.axes()[0].name;
  const auto sum = [](const Tensor& x) { return reduce_sum(x * x); };
  const Tensor reduced = reduce_sum(parts, {part});
  const Tensor scattered = rename(reduce_sum(parts * 2.0, {part}), whole, "split");
  const Tensor gathered = rename(shards, split, "whole");
  const Tensor exchanged = with_layout(with_layout(table, "rows:" + axis) * 2.0, "columns:" + axis);
  const nlohmann::json trace =
      traced(graph, Layout::parse("part:" + axis + " split:" + axis),
             {.fetch = {sum(reduced), sum(scattered), sum(gathered), sum(exchanged)}}, place, runs);
  std::map<std::string, std::map<std::int64_t, double>> longest;  // by kind and step
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("pid") != 0 || event.at("args").at("use") != "collective") continue;
    double& most = longest[event.at("args").at("kind")][event.at("args").at("step").get<std::int64_t>()];
    most = std::max(most, event.at("dur").get<double>() * 1e-6);
  }
  std::map<std::string, double> seconds;
  for (const auto& [kind, by_step] : longest) {
    std::vector<double> all;
    for (const auto& [number, one] : by_step) all.push_back(one);
    seconds[kind] = median(all);
  }
  return seconds;
}

double empty_step_seconds(const ProbePlace& place) { return small_step_seconds(place, 1, 1); }

double instruction_seconds(const ProbePlace& place, bool is_divided) {
  constexpr int kMore = 32;
  const auto each = [&](std::int64_t elements) {
    return (small_step_seconds(place, 1 + kMore, elements) - small_step_seconds(place, 1, elements)) / kMore;
  };
  if (!is_divided) return std::max(0.0, each(1));
  constexpr std::int64_t kElements = 8192;
  return std::max(0.0, 2 * each(kElements) - each(2 * kElements));  // without the time that grows with the elements
}

}  // namespace weft::tools
