#include "plan/program_work.h"

#include <algorithm>
#include <map>
#include <optional>

#include "program/attend.h"
#include "program/cost.h"

namespace weft {

namespace {

using Work = WorkBound::Work;

class Reader {
 public:
  Reader(const SplitRules& rules, const Rates& rates, const Machine& machine, ProgramWork& result)
      : rules_(rules), rates_(rates), machine_(machine), result_(result) {}

  void read(const Program& p, double trips) {
    trips_ = trips;
    std::map<ValueId, Pending> pending;  // values that are partial if some dims are split, not used yet
    const std::vector<bool> divided = divided_by_storage(p);
    widening_ = widening(p);
    for (std::size_t i = 0; i < p.body.size(); ++i) {
      const Instr& instr = p.body[i];
      use(p, instr, pending);
      if (const auto* loop = instr.as<Loop>()) {
        read(*loop->body, trips * static_cast<double>(loop->trips));
        trips_ = trips;
        widening_ = widening(p);
      } else if (std::optional<Work> work = work_of(p, instr)) {
        work->is_update = divided[i];
        result_.order.emplace_back(*std::move(work), trips);
      }
      define(p, instr, pending);
    }
  }

 private:
  struct Pending {
    DimSet summed = 0;
    std::size_t begin = 0;  // the work after the one that makes it
    bool is_gathered = false;
  };

  Extent extent(const Shape& shape, double factor = 1) const { return extent_of(shape, rules_, factor); }
  Extent bytes(const Value& value) const { return extent(value.shape, static_cast<double>(size_of(value.dtype))); }

  DimSet all_dims(const Program& p, const Instr& instr) const {
    DimSet all = 0;
    for (const auto* ids : {&instr.inputs, &instr.outputs})
      for (const ValueId id : *ids) all |= extent(p.values[id].shape).dims;
    return all;
  }

  void add_bytes(const Program& p, const std::vector<ValueId>& ids, std::vector<Extent>& all) const {
    for (const ValueId id : ids) {
      Extent one = bytes(p.values[id]);
      one.size /= widening_[id];
      const auto same = std::ranges::find(all, one.dims, &Extent::dims);
      if (same == all.end()) all.push_back(one);
      else same->size += one.size;
    }
  }

  Work product(const Program& p, const Instr& instr) const {
    const Value &x = p.values[instr.inputs[0]], &y = p.values[instr.inputs[1]], &out = p.values[instr.outputs[0]];
    std::vector<Dim> m, n, k, outer;
    for (const Dim& dim : x.shape.plus(y.shape)) {
      const bool in_x = x.shape.has(dim.name), in_y = y.shape.has(dim.name), in_out = out.shape.has(dim.name);
      (!in_out ? k : in_x && in_y ? outer : in_x ? m : n).push_back(dim);
    }
    Work work{.kind = Work::Kind::kProduct, .dtype = x.dtype};
    work.m = extent(Shape(m));
    work.n = extent(Shape(n));
    work.k = extent(Shape(k));
    work.outer = extent(Shape(outer));
    return work;
  }

  double attend_rate(const Program& p, const Instr& instr) const {
    const AttendRules& attend = *attend_rules(instr);
    const Value& key = p.values[instr.inputs[1]];
    const double sizes[2] = {static_cast<double>(key.shape.size_of(attend.memory)),
                             static_cast<double>(key.shape.size_of(attend.key))};
    for (const AttendRates& one : rates_.attention)
      if (one.dtype == key.dtype) return (instr.is<AttendBack>() ? one.backward : one.forward).at(sizes);
    return machine_.peak(key.dtype);
  }

  std::optional<Work> work_of(const Program& p, const Instr& instr) const {
    if (is_view(instr) || instr.is<Done>() || instr.is<Copy>() || instr.is<Concat>()) return std::nullopt;
    Work work;
    if (instr.is<Contract>()) {
      work = product(p, instr);
    } else {
      const bool attends = attend_rules(instr) != nullptr;
      work.kind = attends ? Work::Kind::kAttend : instr.is<Random>() ? Work::Kind::kRandom : Work::Kind::kSweep;
      work.flops = {cost_of(p, instr).flops, all_dims(p, instr)};
      if (attends) work.rate = attend_rate(p, instr);
      else if (instr.is<Random>()) work.bytes = {extent(p.values[instr.outputs[0]].shape)};
      else {
        add_bytes(p, instr.inputs, work.bytes);
        add_bytes(p, instr.outputs, work.bytes);
      }
    }
    work.dims = all_dims(p, instr);
    work.is_update = instr.origin.phase == Phase::kUpdate;
    return work;
  }

  // The dims over which the results are partial if they are split, from the instruction itself.
  DimSet sums_over(const Program& p, const Instr& instr) const {
    if (instr.is<Contract>()) return product(p, instr).k.dims;
    if (const auto* gather = instr.as<Gather>())
      if (const int i = rules_.find(gather->dim); i >= 0) return DimSet{1} << i;
    return 0;
  }

  // A split dim that a view renames is gathered: the value then has another dim in its place, which the layout does not
  // split over the same axes.
  DimSet gathered_by(const Program& p, const Instr& instr) const {
    if (!instr.is<View>()) return 0;
    const Shape &from = p.values[instr.inputs[0]].shape, &to = p.values[instr.outputs[0]].shape;
    const Shape made = to.minus(from), lost = from.minus(to);
    DimSet dims = 0;
    if (made.rank() == 1)
      for (const Dim& dim : lost)
        if (dim.size == made[0].size) dims |= extent({dim}).dims;
    return dims & ~extent(to).dims;
  }

  void define(const Program& p, const Instr& instr, std::map<ValueId, Pending>& pending) const {
    if (const DimSet dims = gathered_by(p, instr); dims && !pending.contains(instr.outputs[0])) {
      pending[instr.outputs[0]] = {dims, result_.order.size(), true};
      return;
    }
    if (instr.origin.phase == Phase::kUpdate) return;
    if (const DimSet summed = sums_over(p, instr)) pending[instr.outputs[0]] = {summed, result_.order.size()};
  }

  // A reduction may move behind views and sums of partial values; every other use needs it done. Of partial values that
  // the update sums, one is counted.
  void use(const Program& p, const Instr& instr, std::map<ValueId, Pending>& pending) {
    std::vector<ValueId> used;
    DimSet common = ~DimSet{0};
    for (const ValueId id : instr.inputs) {
      if (pending.contains(id)) used.push_back(id);
      if (p.values[id].shape.rank() > 0) common &= pending.contains(id) ? pending[id].summed : 0;
    }
    if (used.empty()) return;
    const bool is_update = instr.origin.phase == Phase::kUpdate,
               may_sum = (instr.is<Map>() || instr.is<Fused>()) && common != 0 && used.size() > 1,
               passes = is_view(instr) || (may_sum && !is_update);
    if (may_sum && is_update) {
      for (std::size_t i = 1; i < used.size(); ++i) pending.erase(used[i]);
      pending[used[0]].summed = common;
      used.resize(1);
    }
    for (const ValueId id : used) {
      const Pending from = pending[id];
      pending.erase(id);
      if (passes) {
        for (const ValueId out : instr.outputs)
          pending[out] = {from.summed & common, result_.order.size(), from.is_gathered};
      } else if (from.is_gathered && !attend_rules(instr)) {
        // Only attention needs the whole dim in any case.
      } else if (!instr.is<Contract>()) {
        auto& all = is_update ? result_.gradients : result_.partials;
        all.push_back({.bytes = bytes(p.values[id]),
                       .summed = from.summed,
                       .begin = from.begin,
                       .end = result_.order.size(),
                       .trips = trips_,
                       .is_gathered = from.is_gathered});
      }
    }
  }

  const SplitRules& rules_;
  const Rates& rates_;
  const Machine& machine_;
  ProgramWork& result_;
  double trips_ = 1;
  ByValue<double> widening_;
};

}  // namespace

Extent extent_of(const Shape& shape, const SplitRules& rules, double factor) {
  Extent result{factor, 0};
  for (const Dim& dim : shape) {
    result.size *= static_cast<double>(dim.size);
    if (const int i = rules.find(dim.name); i >= 0) result.dims |= DimSet{1} << i;
  }
  return result;
}

std::vector<bool> divided_by_storage(const Program& program) {
  const auto is_pointwise = [](const Instr& instr) {
    return is_view(instr) || instr.is<Map>() || instr.is<Fused>() || instr.is<Copy>() || is_collective(instr) ||
           instr.is<Done>();
  };
  ByValue<bool> of_variables(program.values.size()), for_others(program.values.size());
  for (const ProgramVariable& variable : program.variables) of_variables[variable.value] = true;
  std::vector<bool> divided(program.body.size());
  for (std::size_t i = 0; i < program.body.size(); ++i) {
    const Instr& instr = program.body[i];
    divided[i] = instr.origin.phase == Phase::kUpdate;
    if (!is_pointwise(instr) || instr.inputs.empty()) continue;
    if (!std::ranges::all_of(instr.inputs, [&](ValueId id) { return of_variables[id]; })) continue;
    divided[i] = true;
    for (const ValueId id : instr.outputs) of_variables[id] = true;
  }
  // Gradients: values that nothing but the update reads.
  for (std::size_t i = program.body.size(); i-- > 0;) {
    const Instr& instr = program.body[i];
    const bool is_for_others = std::ranges::any_of(instr.outputs, [&](ValueId id) { return for_others[id]; });
    if (is_pointwise(instr) && !is_for_others) divided[i] = true;
    if (instr.origin.phase == Phase::kUpdate || (is_pointwise(instr) && !is_for_others)) continue;
    for (const ValueId id : instr.inputs) for_others[id] = true;
  }
  return divided;
}

ByValue<double> widening(const Program& program) {
  ByValue<double> factors(program.values.size(), 1);
  for (const Instr& instr : program.body) {
    if (instr.inputs.empty()) continue;
    const auto size = [&](ValueId id) { return static_cast<double>(size_of(program.values[id].dtype)); };
    if (is_view(instr)) factors[instr.outputs[0]] = factors[instr.inputs[0]];
    else if (instr.is<Contract>())
      factors[instr.outputs[0]] = std::max(1.0, size(instr.outputs[0]) / size(instr.inputs[0]));
  }
  return factors;
}

ProgramWork work_of(const Program& program, const SplitRules& rules, const Rates& rates, const Machine& machine) {
  ProgramWork result;
  Reader(rules, rates, machine, result).read(program, 1);
  return result;
}

}  // namespace weft
