#include "plan/wire_cost.h"

#include <algorithm>
#include <cmath>

#include "base/index.h"

namespace weft {

namespace {

// Where the members of a group lie along one side of a level: `count` members, `step` units apart.
struct Overlap {
  std::int64_t count = 1, step = 1;
};

// An axis covers [stride, stride * size) in processor order, the side [inner, inner * side).
Overlap overlap_of(std::int64_t stride, std::int64_t size, std::int64_t inner, std::int64_t side) {
  const std::int64_t low = std::max(stride, inner), high = std::min(stride * size, inner * side);
  if (high <= low) return {};
  return {(high + low - 1) / low, low / inner};
}

// A side of a ring or torus: groups that interleave share its wires, and a group that fills it can go both ways.
void add_ring(Stage& stage, const Overlap& members, int side, const Link& link) {
  const bool closed = members.count * members.step >= side;
  const double wire = link.bandwidth / static_cast<double>(members.step) / link.shared_by;
  stage.count *= static_cast<int>(members.count);
  stage.rate += wire * (closed ? 2 : 1);
  stage.latency += static_cast<double>(members.count - 1) * link.latency;
  stage.distance = std::max(stage.distance, static_cast<double>(members.count) / 4);
  stage.one_way = wire;
  stage.one_step = link.latency * static_cast<double>(members.step);
}

// Any member reaches any other.
void add_switch(Stage& stage, const Overlap& members, const Link& link) {
  stage.count *= static_cast<int>(members.count);
  stage.rate = stage.one_way = link.bandwidth / link.shared_by;
  stage.latency = std::ceil(std::log2(static_cast<double>(stage.count))) * link.latency;
  stage.one_step = link.latency;
}

bool is_ring(const Link& link) { return link.topology == Topology::kRing || link.topology == Topology::kTorus; }

// All that a member has (`bytes` before, or after), level by level: each level leaves the next one a part of it.
double scatter_seconds(double bytes, const std::vector<Stage>& stages) {
  double seconds = 0;
  for (const Stage& stage : stages) {
    seconds += bytes * (stage.count - 1) / stage.count / stage.rate + stage.latency;
    bytes /= stage.count;
  }
  return seconds;
}

double exchange_seconds(double bytes, const std::vector<Stage>& stages) {
  double seconds = 0;
  for (const Stage& stage : stages)
    seconds += bytes * (stage.count - 1) / stage.count * stage.distance / stage.rate + stage.latency;
  return seconds;
}

}  // namespace

std::vector<Stage> stages_of(const Mesh& mesh, const Axes& axes, const Machine& machine) {
  std::vector<std::int64_t> strides(mesh.axes().size(), 1);
  for (std::size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * mesh.axes()[i].size;
  std::vector<Stage> stages;
  std::int64_t inner = 1;
  for (const Link& link : machine.links) {
    Stage stage;
    for (const int side : link.sides) {
      for (const int axis : axes) {
        const Overlap members = overlap_of(strides[at(axis)], mesh.axes()[at(axis)].size, inner, side);
        if (members.count == 1) continue;
        if (is_ring(link)) add_ring(stage, members, side, link);
        else add_switch(stage, members, link);
      }
      inner *= side;
    }
    if (stage.count > 1) stages.push_back(stage);
  }
  return stages;
}

double collective_seconds(const Operation& operation, double bytes, const std::vector<Stage>& stages) {
  if (stages.empty()) return 0;
  if (std::holds_alternative<AllReduce>(operation)) return 2 * scatter_seconds(bytes, stages);
  if (std::holds_alternative<AllToAll>(operation)) return exchange_seconds(bytes, stages);
  if (std::holds_alternative<Permute>(operation)) return bytes / stages.back().one_way + stages.back().one_step;
  return scatter_seconds(bytes, stages);  // reduce_scatter, and all_gather backwards
}

}  // namespace weft
