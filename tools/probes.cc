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

}  // namespace

std::map<std::string, ProbeTime> time_probes(const Graph& graph, const CompileOptions& options, const Mesh& mesh,
                                             const wire::Choice& wire, const std::string& kind, int runs) {
  CompileOptions traced = options;
  traced.trace = {.first = kWarmUp, .steps = runs};
  Session session(mesh, wire);
  Executable step = session.compile(graph, Layout(), traced);
  for (int i = 0; i < kWarmUp + runs; ++i) step.run();
  const auto trace = nlohmann::json::parse(step.trace(Machine::uniform(1, 1)));
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

double meeting_seconds(const Mesh& mesh, const wire::Choice& wire, int runs) {
  constexpr int kMeetings = 16;
  const Dim rows{"m", 128}, columns{"n", 128}, summed{"k", 3072 * mesh.size()};
  static_assert(128 * 128 * sizeof(float) == kMeetingBytes);
  Graph graph;
  const Tensor x = graph.variable("x", {rows, summed}, init::normal(1));
  const Tensor y = graph.variable("y", {summed, columns}, init::normal(1));
  Tensor last = reduce_sum(x * 0.0);
  for (int i = 0; i < kMeetings; ++i) {  // each after the last, so that none is merged with it
    const Tensor product = einsum({x + last, y}, {rows, columns});
    last = reduce_sum(product * product) * 1e-30;
  }
  Session session(mesh, wire);
  Executable step = session.compile(graph, Layout::parse("k:" + mesh.axes()[0].name),
                                    {.fetch = {last}, .trace = {.first = kWarmUp, .steps = runs}});
  for (int i = 0; i < kWarmUp + runs; ++i) step.run();
  const auto trace = nlohmann::json::parse(step.trace(Machine::uniform(1, 1)));
  std::map<std::int64_t, double> by_step;  // of all processors together
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X" && event.at("args").at("use") == "collective")
      by_step[event.at("args").at("step").get<std::int64_t>()] += event.at("dur").get<double>() * 1e-6;
  std::vector<double> all;
  for (const auto& [number, seconds] : by_step) all.push_back(seconds);
  return median(all) / (kMeetings * mesh.size());
}

double empty_step_seconds(const Mesh& mesh, const wire::Choice& wire) {
  Graph graph;
  const Tensor x = graph.variable("x", {});
  Session session(mesh, wire);
  Executable step = session.compile(graph, Layout(), {.update = {assign(x, x + 1.0)}});
  std::vector<double> all;
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return median(all);
}

}  // namespace weft::tools
