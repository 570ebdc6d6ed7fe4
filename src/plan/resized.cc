#include "plan/resized.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/str.h"
#include "plan/resized_program.h"

namespace weft {

namespace {

double up_to_tile(double size, std::int64_t tile) {
  return tile == 1 ? size : std::ceil(size / static_cast<double>(tile) - 1e-9) * static_cast<double>(tile);
}

double sum_of(const std::vector<AxisExtent>& extents, const ResizedMesh& mesh) {
  double sum = 0;
  for (const AxisExtent& extent : extents) sum += mesh.local(extent);
  return sum;
}

bool has_collectives(const ResizedCost::Body& body) {
  return !body.collectives.empty() ||
         std::ranges::any_of(body.loops, [](const auto& loop) { return has_collectives(loop.first); });
}

double largest_rate(const Table& table) { return *std::ranges::max_element(table.values); }

// The run that makes the matrix: one that is preferred, else the largest.
double taken(const std::vector<ResizedCost::Run>& runs, const ResizedMesh& mesh) {
  double best = 1;
  bool is_unit = false;
  for (const ResizedCost::Run& run : runs) {
    const double size = mesh.local(run.size);
    if (size <= 1 || (is_unit && !run.is_unit)) continue;
    if (run.is_unit == is_unit && size <= best) continue;
    best = size;
    is_unit = run.is_unit;
  }
  return best;
}

double all_of(const std::vector<ResizedCost::Run>& runs, const ResizedMesh& mesh) {
  double product = 1;
  for (const ResizedCost::Run& run : runs) product *= mesh.local(run.size);
  return product;
}

double bytes_of(const ResizedCost::Pieces& pieces, const ResizedMesh& mesh) {
  std::vector<double> change(static_cast<std::size_t>(pieces.end) + 3);
  for (const auto& piece : pieces.pieces) {
    const double bytes =
        piece.loop < 0 ? mesh.local(piece.bytes) : bytes_of(pieces.loops[static_cast<std::size_t>(piece.loop)], mesh);
    change[static_cast<std::size_t>(piece.first + 1)] += bytes;
    change[static_cast<std::size_t>(piece.last + 2)] -= bytes;
  }
  double live = 0, most = 0;
  for (const double each : change) most = std::max(most, live += each);
  return most * pieces.packing;
}

}  // namespace

void ResizedStep::add(double weight, const ResizedStep& other) {
  rest += weight * other.rest;
  compute += weight * other.compute;
  wire += weight * other.wire;
  exposed += weight * other.exposed;
  flops += weight * other.flops;
  variable_bytes += weight * other.variable_bytes;
  arena_bytes += weight * other.arena_bytes;
  floor += weight * other.floor;
}

// The compute stream and the wire stream, as Pricer has them.
struct ResizedCost::Clock {
  double now = 0, wire_free = 0, met = 0;
  ResizedStep step;
  std::vector<double> arrives;       // by value: what a started collective gives
  std::vector<double> last_touched;  // by value: the bytes that had been touched when it was last touched
  double bytes = 0;
  double step_bytes = 0;  // that the body touches, if caches matter

  void wait_until(double time) {
    step.exposed += std::max(0.0, time - now);
    now = std::max(now, time);
  }
  double lateness(double skew) { return skew * (step.compute - std::exchange(met, step.compute)); }
};

ResizedCost::ResizedCost(const Program& program, const Machine& machine, const Target& target)
    : machine_(machine),
      rates_(machine.rates_of(program.mesh.size())),
      crowding_(machine.crowding(program.mesh.size())) {
  const ResizedProgram reader(program, machine, rates_);
  body_ = reader.body(program);
  arena_ = reader.arena(program, plan_memory(program, target));
  flops_ = reader.flops(program);
  variable_bytes_ = reader.variable_bytes(program);
  divisions_ = reader.divisions(program);
}

std::string ResizedCost::uneven(std::span<const int> sizes) const {
  std::string text;
  for (const auto& [size, axes] : divisions_) {
    std::int64_t parts = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (axes >> i & 1) parts *= sizes[i];
    if (size % parts != 0) text += str(" ", size, ":", axes);
  }
  return text;
}

ResizedStep ResizedCost::at(const ResizedMesh& mesh) const {
  Clock clock;
  run(body_, mesh, clock);
  ResizedStep step = clock.step;
  step.rest = machine_.step_seconds * crowding_;
  step.flops = sum_of(flops_, mesh);
  step.variable_bytes = sum_of(variable_bytes_, mesh);
  step.arena_bytes = bytes_of(arena_, mesh);
  return step;
}

double ResizedCost::product_seconds(const Product& product, const ResizedMesh& mesh) const {
  const double m = taken(product.m, mesh), n = taken(product.n, mesh), k = taken(product.k, mesh);
  const double products = all_of(product.m, mesh) * all_of(product.n, mesh) * all_of(product.k, mesh) *
                          mesh.local(product.outer) / (m * n * k);
  for (const ProductRates& one : rates_.products) {
    if (one.dtype != product.dtype) continue;
    const double sizes[3] = {up_to_tile(m, one.tile[0]), up_to_tile(n, one.tile[1]), up_to_tile(k, one.tile[2])};
    const double rate = one.rate.axes.empty() ? one.rate.values[0] : one.rate.at(sizes);
    return products * 2 * sizes[0] * sizes[1] * sizes[2] / rate;
  }
  return products * 2 * m * n * k / machine_.peak(product.dtype);
}

double ResizedCost::memory_seconds(const Step& step, const ResizedMesh& mesh, Clock& clock) const {
  if (rates_.sweep.axes.empty()) return sum_of(step.bytes, mesh) / rates_.sweep.values[0];
  double seconds = 0;
  for (const Touch& touch : step.touches) {
    const double bytes = mesh.local(touch.bytes);
    double& last = clock.last_touched[static_cast<std::size_t>(touch.value)];
    if (touch.is_update) last = clock.bytes - clock.step_bytes;
    else if (touch.is_written) last = std::max(last, clock.bytes - bytes);  // its place was freed a moment ago
    const double since = std::max(clock.bytes - last, bytes);
    clock.bytes += bytes;
    last = clock.bytes;
    seconds += bytes / rates_.sweep.at({&since, 1});
  }
  return seconds;
}

double ResizedCost::work_seconds(const Body& body, const Step& step, const ResizedMesh& mesh, Clock& clock) const {
  const double memory = memory_seconds(step, mesh, clock);
  switch (step.kind) {
    case Step::Kind::kProduct: return product_seconds(body.products[static_cast<std::size_t>(step.item)], mesh);
    case Step::Kind::kAttend: return sum_of(step.flops, mesh) / step.rate;
    case Step::Kind::kRandom: return sum_of(step.flops, mesh) / rates_.random;
    default: return rates_.seconds_of_both(memory, sum_of(step.flops, mesh) / rates_.pointwise);
  }
}

void ResizedCost::run_collective(const Body& body, const Step& step, const ResizedMesh& mesh, Clock& clock) const {
  const Collective& collective = body.collectives[static_cast<std::size_t>(step.item)];
  const double bytes = std::max(sum_of(collective.in, mesh), sum_of(collective.out, mesh));
  const double seconds = mesh.groups->seconds(collective.operation, collective.name, mesh.sets[collective.axes], bytes);
  const double late = clock.lateness(machine_.skew);
  clock.wire_free = std::max(clock.now, clock.wire_free) + seconds + late;
  clock.step.wire += seconds + late;
  if (step.is_floor) clock.step.floor += seconds;
  clock.arrives[static_cast<std::size_t>(step.value)] = clock.wire_free;
  if (!step.has_done || !machine_.overlaps) clock.wait_until(clock.wire_free);
}

// At least what is left of a reduction of the update if a storage layout splits its operand over `stored`: it may scatter
// instead. Reductions of gradients may be joined, so that their latency is left out.
double ResizedCost::stored_seconds(const Collective& collective, bool is_update, const ResizedMesh& mesh,
                                   AxisSet stored) const {
  const bool is_all_reduce = std::holds_alternative<AllReduce>(collective.operation);
  if (!is_all_reduce && !std::holds_alternative<ReduceScatter>(collective.operation)) return 0;
  const auto seconds = [&](double bytes) {
    return mesh.groups->seconds(collective.operation, collective.name, mesh.sets[collective.axes], bytes);
  };
  const double bytes =
      std::max(sum_of(collective.in, mesh), sum_of(collective.out, mesh)) * mesh.shares[stored & ~collective.axes];
  const double once = seconds(bytes) - (is_update ? 0 : seconds(0));
  return is_all_reduce && (stored & collective.axes) ? once / 2 : once;
}

double ResizedCost::update_seconds(const ResizedMesh& mesh, AxisSet stored) const {
  ResizedMesh split = mesh;
  for (AxisSet set = 0; set < mesh.shares.size(); ++set) split.shares[set] = mesh.shares[set | stored];
  const double parts = mesh.shares[stored];
  const auto seconds = [&](const Step& step) {
    switch (step.kind) {
      case Step::Kind::kProduct:
        return product_seconds(body_.products[static_cast<std::size_t>(step.item)], mesh) * parts;
      case Step::Kind::kAttend: return sum_of(step.flops, split) / step.rate;
      case Step::Kind::kRandom: return sum_of(step.flops, split) / rates_.random;
      default:
        return rates_.seconds_of_both(
            (sum_of(step.bytes, split) - sum_of(step.wide, split)) / largest_rate(rates_.sweep),
            sum_of(step.flops, split) / rates_.pointwise);
    }
  };
  double sum = 0;
  for (const Step& step : body_.steps) {
    if (step.is_update && step.kind <= Step::Kind::kSweep)
      sum += (seconds(step) + rates_.overhead * parts) * crowding_;  // there may be fewer instructions
    else if (!step.is_floor && step.kind == Step::Kind::kCollective && !machine_.overlaps)
      sum += stored_seconds(body_.collectives[static_cast<std::size_t>(step.item)], step.is_update, mesh, stored);
  }
  return sum;
}

void ResizedCost::run(const Body& body, const ResizedMesh& mesh, Clock& clock) const {
  const auto values = static_cast<std::size_t>(body.values);
  std::vector<double> arrives = std::exchange(clock.arrives, std::vector<double>(values));
  std::vector<double> touched = std::exchange(clock.last_touched, {});
  const double bytes = std::exchange(clock.bytes, 0);
  const double step_bytes = std::exchange(clock.step_bytes, 0);
  if (!rates_.sweep.axes.empty()) {
    clock.step_bytes = sum_of(body.touched_in_step, mesh);
    clock.last_touched.assign(values, -clock.step_bytes);
  }
  for (const Step& step : body.steps) {
    if (step.kind == Step::Kind::kDone) {
      clock.wait_until(clock.arrives[static_cast<std::size_t>(step.value)]);
    } else if (step.kind == Step::Kind::kCollective) {
      run_collective(body, step, mesh, clock);
    } else if (step.kind == Step::Kind::kLoop) {
      const auto& [inner, trips] = body.loops[static_cast<std::size_t>(step.item)];
      const bool meets = has_collectives(inner);
      const auto meet = [&] {
        if (meets) clock.wait_until(clock.now + clock.lateness(machine_.skew));
      };
      meet();
      const double begin = clock.now;
      const ResizedStep before = clock.step;
      run(inner, mesh, clock);
      meet();
      const auto repeat = [&](double& now, double then) { now += (trips - 1) * (now - then); };
      repeat(clock.now, begin);
      repeat(clock.step.compute, before.compute);
      repeat(clock.step.wire, before.wire);
      repeat(clock.step.exposed, before.exposed);
      if (meets) clock.met = clock.step.compute;
      if (step.is_floor) clock.step.floor += clock.now - begin;
    } else {
      const double seconds = (work_seconds(body, step, mesh, clock) + rates_.overhead) * crowding_;
      clock.now += seconds;
      clock.step.compute += seconds;
      if (step.is_floor) clock.step.floor += seconds;
    }
  }
  clock.arrives = std::move(arrives);
  clock.last_touched = std::move(touched);
  clock.bytes = bytes;
  clock.step_bytes = step_bytes;
}

}  // namespace weft
