#include "plan/cost.h"

#include <algorithm>
#include <utility>

#include "base/str.h"
#include "program/attend.h"
#include "program/builder.h"
#include "program/cost.h"
#include "program/matrix_form.h"
#include "program/memory_plan.h"
#include "weft/error.h"

namespace weft {

namespace {

double rounded_up(std::int64_t size, std::int64_t tile) { return static_cast<double>((size + tile - 1) / tile * tile); }

void check_size(const Machine& machine, const Mesh& mesh) {
  if (mesh.size() <= machine.processors) return;
  throw UserError({.code = "machine.too-few-processors",
                   .what = str("the mesh has ", mesh.size(), " processors, but the machine has ", machine.processors),
                   .where = str("mesh ", mesh, ", machine ", machine.name),
                   .fix = "use a smaller mesh, or the description of a larger machine"});
}

double bytes_of_all(const Program& p, const std::vector<ValueId>& values) {
  double sum = 0;
  for (const ValueId id : values) sum += static_cast<double>(bytes_of(p.values[id]));
  return sum;
}

bool has_collectives(const Program& program) {
  return std::ranges::any_of(program.body, [](const Instr& instr) {
    return is_collective(instr) || (instr.is<Loop>() && has_collectives(*instr.as<Loop>()->body));
  });
}

}  // namespace

ByValue<bool> updates_of(const Program& program) {
  ByValue<bool> is_update(program.values.size());
  for (const ProgramVariable& variable : program.variables)
    if (variable.update && *variable.update != variable.value) is_update[*variable.update] = true;
  for (auto instr = program.body.rbegin(); instr != program.body.rend(); ++instr)
    if (is_view(*instr) && is_update[instr->outputs[0]]) is_update[instr->inputs[0]] = true;
  return is_update;
}

Pricer::Pricer(const Machine& machine, const Mesh& mesh)
    : machine_(machine), mesh_(mesh), rates_(machine.rates_of(mesh.size())), crowding_(machine.crowding(mesh.size())) {
  check_size(machine, mesh);
}

// Which values the caches still hold. A value that a step reads before it writes it was last touched in the step before.
class Pricer::Touched {
 public:
  Touched(const Program& program, const Table& sweep)
      : p_(program), sweep_(sweep), base_(program.values.size()), is_update_(updates_of(program)) {
    for (const ProgramVariable& variable : p_.variables) step_ += bytes(variable.value);
    for (const Instr& instr : p_.body) {
      if (is_view(instr)) base_[instr.outputs[0]] = base(instr.inputs[0]);
      else
        for (const ValueId id : instr.outputs) step_ += bytes(id);
    }
    last_ = ByValue<double>(p_.values.size(), -step_);
  }

  // Seconds to read and write the operands and results.
  double touch(const Instr& instr) {
    double seconds = 0;
    for (const ValueId id : instr.inputs) seconds += touch(base(id), bytes(id));
    for (const ValueId id : instr.outputs) {
      // Its place was freed a moment ago. But a variable's new contents go to memory before the next step reads them.
      last_[id] = is_update_[id] ? now_ - step_ : std::max(last_[id], now_ - bytes(id));
      seconds += touch(id, bytes(id));
    }
    return seconds;
  }

 private:
  double bytes(ValueId id) const { return static_cast<double>(bytes_of(p_.values[id])); }
  ValueId base(ValueId id) const { return base_[id] ? base_[id] : id; }
  double touch(ValueId id, double bytes) {
    const double since = std::max(now_ - last_[id], bytes);
    now_ += bytes;
    last_[id] = now_;
    return bytes / (sweep_.axes.empty() ? sweep_.values[0] : sweep_.at({&since, 1}));
  }

  const Program& p_;
  const Table& sweep_;
  ByValue<ValueId> base_;    // of views: the value whose storage they share
  ByValue<bool> is_update_;  // a variable's new contents
  ByValue<double> last_;     // per value: the bytes that had been touched when it was last touched
  double now_ = 0, step_ = 0;
};

// The compute stream and the wire stream of one processor.
struct Pricer::Clock {
  double now = 0;        // of the compute stream
  double wire_free = 0;  // when the wire has done all that was started
  double met = 0;        // what the processor had computed when it last met others
  StepCost cost;
  std::vector<TimedInstr>* timeline = nullptr;

  void note(const Program& p, const Instr& instr, double begin, double end) const {
    if (timeline) timeline->push_back({&p, &instr, begin, end});
  }
  void wait_until(double time) {
    cost.exposed += std::max(0.0, time - now);
    now = std::max(now, time);
  }
  // How late others may be that have computed as much as this processor since all met.
  double lateness(double skew) { return skew * (cost.compute - std::exchange(met, cost.compute)); }
};

StepCost Pricer::price(const Program& program, std::vector<TimedInstr>* timeline) {
  Clock clock;
  clock.timeline = timeline;
  run(program, clock);
  clock.cost.seconds = clock.now + machine_.step_seconds * crowding_;
  return clock.cost;
}

void Pricer::run(const Program& program, Clock& clock) {
  const ByValue<std::vector<std::int64_t>> strides = strides_of(program);
  Touched touched(program, rates_.sweep);
  constexpr double kNoDone = -1;
  ByValue<double> arrives(program.values.size(), kNoDone);  // what a started collective gives: when it is there
  for (const Instr& instr : program.body)
    if (instr.is<Done>()) arrives[instr.inputs[0]] = 0;
  for (const Instr& instr : program.body) {
    if (is_view(instr)) continue;
    const double begin = clock.now;
    if (instr.is<Loop>()) {
      run_loop(*instr.as<Loop>(), clock);
    } else if (instr.is<Done>()) {
      clock.wait_until(arrives[instr.inputs[0]]);
    } else if (is_collective(instr)) {
      const double started = std::max(clock.now, clock.wire_free);
      const double seconds = wire_seconds(program, instr) + clock.lateness(machine_.skew);
      clock.wire_free = started + seconds;
      clock.cost.wire += seconds;
      double& arrival = arrives[instr.outputs[0]];
      const bool waits = arrival == kNoDone || !machine_.overlaps;
      arrival = clock.wire_free;
      if (waits) clock.wait_until(arrival);
      clock.note(program, instr, started, clock.wire_free);
      continue;
    } else {
      const Cost cost = cost_of(program, instr);
      const double seconds = compute_seconds(program, instr, cost, touched.touch(instr), strides);
      clock.cost.flops += cost.flops;
      clock.cost.compute += seconds;
      clock.now += seconds;
    }
    clock.note(program, instr, begin, clock.now);
  }
}

// All trips take as long as the first; a timeline has each of them.
void Pricer::run_loop(const Loop& loop, Clock& clock) {
  const bool meets = has_collectives(*loop.body);
  const auto meet = [&] {
    if (meets) clock.wait_until(clock.now + clock.lateness(machine_.skew));
  };
  meet();
  if (clock.timeline) {
    for (std::int64_t trip = 0; trip < loop.trips; ++trip) {
      run(*loop.body, clock);
      meet();
    }
    return;
  }
  const Clock before = clock;
  run(*loop.body, clock);
  meet();
  const auto repeat = [&](double& now, double then) { now += static_cast<double>(loop.trips - 1) * (now - then); };
  repeat(clock.now, before.now);
  repeat(clock.cost.compute, before.cost.compute);
  repeat(clock.cost.wire, before.cost.wire);
  repeat(clock.cost.exposed, before.cost.exposed);
  repeat(clock.cost.flops, before.cost.flops);
  if (meets) clock.met = clock.cost.compute;
}

double Pricer::compute_seconds(const Program& program, const Instr& instr, const Cost& cost, double memory_seconds,
                               const ByValue<std::vector<std::int64_t>>& strides) const {
  const double work = instr.is<Contract>()   ? contract_seconds(program, instr, strides)
                      : instr.is<Convolve>() ? convolve_seconds(program, instr)
                      : attend_rules(instr)  ? attend_seconds(program, instr, cost.flops)
                      : instr.is<Random>()   ? cost.bytes / 4 / rates_.random
                                             : rates_.seconds_of_both(memory_seconds, cost.flops / rates_.pointwise);
  return (work + rates_.overhead) * crowding_;
}

double Pricer::contract_seconds(const Program& program, const Instr& instr,
                                const ByValue<std::vector<std::int64_t>>& strides) const {
  const ValueId x = instr.inputs[0], y = instr.inputs[1], out = instr.outputs[0];
  const MatrixForm form = matrix_form({program.values[x].shape, strides[x]}, {program.values[y].shape, strides[y]},
                                      {program.values[out].shape, strides[out]});
  return static_cast<double>(form.products()) *
         product_seconds(program.values[x].dtype, {form.m.size, form.n.size, form.k.size});
}

// As one product: places by channels of y, summed over the rest of the filter.
double Pricer::convolve_seconds(const Program& program, const Instr& instr) const {
  const WindowRoles roles = roles_of(instr);
  const Shape &y = program.values[roles.y].shape, &filter = program.values[roles.filter].shape;
  std::int64_t channels = 1;
  for (const Dim& dim : filter)
    if (y.has(dim.name)) channels *= dim.size;
  return product_seconds(program.values[instr.inputs[0]].dtype,
                         {y.elements() / channels, channels, filter.elements() / channels});
}

// One product of these m, n and k.
double Pricer::product_seconds(DType dtype, const std::array<std::int64_t, 3>& sizes) const {
  for (const ProductRates& one : rates_.products) {
    if (one.dtype != dtype) continue;
    const double padded[3] = {rounded_up(sizes[0], one.tile[0]), rounded_up(sizes[1], one.tile[1]),
                              rounded_up(sizes[2], one.tile[2])};
    const double rate = one.rate.axes.empty() ? one.rate.values[0] : one.rate.at(padded);
    return 2 * padded[0] * padded[1] * padded[2] / rate;
  }
  const double flops =
      2.0 * static_cast<double>(sizes[0]) * static_cast<double>(sizes[1]) * static_cast<double>(sizes[2]);
  return flops / machine_.peak(dtype);
}

double Pricer::attend_seconds(const Program& program, const Instr& instr, double flops) const {
  const AttendRules& rules = *attend_rules(instr);
  const Value& key = program.values[instr.inputs[1]];
  const double sizes[2] = {static_cast<double>(key.shape.size_of(rules.memory)),
                           static_cast<double>(key.shape.size_of(rules.key))};
  for (const AttendRates& one : rates_.attention)
    if (one.dtype == key.dtype) return flops / (instr.is<AttendBack>() ? one.backward : one.forward).at(sizes);
  return flops / machine_.peak(key.dtype);
}

double Pricer::wire_seconds(const Program& program, const Instr& instr) {
  const double bytes = std::max(bytes_of_all(program, instr.inputs), bytes_of_all(program, instr.outputs));
  const Group& group = group_of(axes_of(instr));
  for (const CollectiveTimes& times : machine_.collectives) {
    if (times.kind != name_of(instr)) continue;
    // Beyond the largest measured size the rate is constant.
    const double most = times.seconds.axes[1].back();
    const double sizes[2] = {static_cast<double>(group.size), std::min(bytes, most)};
    return times.seconds.at(sizes) * std::max(1.0, bytes / most);
  }
  return collective_seconds(instr.operation, bytes, group.stages);
}

const Pricer::Group& Pricer::group_of(const Axes& axes) {
  for (const Group& group : groups_)
    if (group.axes == axes) return group;
  groups_.push_back({axes, mesh_.size(axes), stages_of(mesh_, axes, machine_)});
  return groups_.back();
}

StepCost price(const Program& program, const Machine& machine) { return Pricer(machine, program.mesh).price(program); }

}  // namespace weft
