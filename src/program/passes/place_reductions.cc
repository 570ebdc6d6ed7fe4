#include <algorithm>
#include <numeric>
#include <optional>

#include "program/passes/passes.h"
#include "program/passes/reduction_plan.h"
#include "program/passes/regroup_sums.h"
#include "program/passes/sink_from_loops.h"

namespace weft {

namespace {

// Lands reductions where their plans pay.
class ReductionPlacer {
 public:
  // The plans are of the program as it is.
  ReductionPlacer(Program& program, const ReductionPlans& plans)
      : p_(program),
        plans_(plans),
        by_(identity<ValueId>(program.values.size())),
        removed_(program.body.size()),
        planned_(program.body.size()),
        lands_(program.body.size(), nullptr),
        origins_(program.body.size()) {}

  // Lands a reduction right on each value if there is a way for it to and if `times` as many bytes may enter it above.
  bool land_on(const std::vector<ValueId>& ids, std::int64_t times) {
    bool changed = false;
    for (ValueId id : ids) {
      const int i = plans_.definitions()[id];
      if (i < 0 || p_.body[at(i)].outputs.size() != 1) continue;
      for (const ReductionPlan& plan : plans_.of(id)) {
        if (plan.is_all_reduce() || !plan.can_land || plan.land.half_bytes > times * plan.below.half_bytes) continue;
        if (planned_[at(i)] || touches_planned(plan)) continue;
        land(at(i), plan);
        changed = true;
        break;
      }
    }
    if (changed) rewrite();
    return changed;
  }

  // From the last instruction up: the lowest place that pays is better than any above it.
  bool run() {
    bool changed = false;
    for (std::size_t i = p_.body.size(); i-- > 0;) {
      if (planned_[i] || p_.body[i].outputs.size() != 1) continue;
      for (const ReductionPlan& plan : plans_.of(p_.body[i].outputs[0]))
        if (plan.pays() && !touches_planned(plan)) {
          land(i, plan);
          changed = true;
          break;
        }
    }
    if (changed) rewrite();
    return changed;
  }

 private:
  std::size_t definition(ValueId id) const { return at(plans_.definitions()[id]); }

  bool touches_planned(const ReductionPlan& plan) const {
    return std::any_of(plan.pending.begin(), plan.pending.end(), [&](ValueId id) {
      return planned_[definition(id)] || touches_planned(*plans_.find(id, plan.key));
    });
  }

  void land(std::size_t i, const ReductionPlan& plan) {
    planned_[i] = true;
    lands_[i] = &plan;
    origins_[i] = {p_.body[i].origin.phase, {}};
    for (ValueId id : plan.pending) pend(id, plan.key, origins_[i]);
  }

  void pend(ValueId id, const ReductionKey& key, Origin& origin) {
    const ReductionPlan& plan = *plans_.find(id, key);
    const std::size_t i = definition(id);
    planned_[i] = true;
    if (plan.is_all_reduce()) {
      removed_[i] = true;
      by_[id] = p_.body[i].inputs[0];
      origin = joined(std::move(origin), p_.body[i].origin);
      return;
    }
    make_pending(p_.values[id].sharding, key.axes, key.how);
    for (ValueId operand : plan.pending) pend(operand, key, origin);
  }

  void rewrite() {
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      if (removed_[i]) continue;
      Instr instr = std::move(p_.body[i]);
      for (ValueId& id : instr.inputs) id = resolved(by_, id);
      if (!lands_[i]) {
        body.push_back(std::move(instr));
        continue;
      }
      const ReductionKey& key = lands_[i]->key;
      const ValueId y = instr.outputs[0];
      ValueType type = type_of(p_, y);
      make_pending(type.sharding, key.axes, key.how);
      const ValueId pending = add_value(p_, p_.values[y].name, std::move(type));
      instr.outputs = {pending};
      body.push_back(std::move(instr));
      body.push_back({AllReduce{key.how, key.axes}, {pending}, {y}, std::move(origins_[i])});
    }
    p_.body = std::move(body);
  }

  Program& p_;
  const ReductionPlans& plans_;
  ByValue<ValueId> by_;        // what stands for the result of a removed all_reduce
  std::vector<bool> removed_;  // per instruction, as all below
  std::vector<bool> planned_;  // part of a landing
  std::vector<const ReductionPlan*> lands_;
  std::vector<Origin> origins_;  // of the reduction that lands here
};

// An all_reduce of nothing but another's result becomes one over both their axes.
bool join_nested(Program& p) {
  const Uses uses(p);
  const ByValue<int> definitions = definitions_of(p);
  std::vector<bool> removed(p.body.size());
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    auto* outer = std::get_if<AllReduce>(&p.body[i].operation);
    if (!outer || p.body[i].inputs.size() != 1) continue;
    const ValueId middle = p.body[i].inputs[0];
    const int first = definitions[middle];
    if (first < 0 || uses.only_user(middle) < 0) continue;
    const auto* inner = p.body[at(first)].as<AllReduce>();
    if (!inner || p.body[at(first)].inputs.size() != 1 || inner->how != outer->how) continue;
    outer->axes.insert(outer->axes.end(), inner->axes.begin(), inner->axes.end());
    std::sort(outer->axes.begin(), outer->axes.end());
    p.body[i].inputs = p.body[at(first)].inputs;
    p.body[i].origin = joined(std::move(p.body[i].origin), p.body[at(first)].origin);
    removed[at(first)] = true;
  }
  std::size_t i = 0;
  return std::erase_if(p.body, [&](const Instr&) { return removed[i++]; }) > 0;
}

// In it, or in a loop of it.
bool has_all_reduce(const Program& p) {
  return std::ranges::any_of(p.body, [](const Instr& instr) {
    return instr.is<AllReduce>() || (instr.is<Loop>() && has_all_reduce(*body_of(instr)));
  });
}

}  // namespace

bool land_reductions_on(Program& program, const std::vector<ValueId>& ids, std::int64_t times) {
  const ReductionPlans plans(program);
  return ReductionPlacer(program, plans).land_on(ids, times);
}

Program place_reductions(Program p, const PassOptions&) {
  if (!has_all_reduce(p)) return p;
  // Each round lowers the bytes or the number of reductions, so this ends by itself: a regrouped sum pays to land on.
  bool changed = true;
  while (changed) {
    changed = join_nested(p);
    std::optional<ReductionPlans> plans(std::in_place, p);
    if (regroup_sums(p, *plans)) {
      changed = true;
      plans.emplace(p);
    }
    if (ReductionPlacer(p, *plans).run()) changed = true;
    if (sink_from_loops(p)) changed = true;
  }
  return p;
}

}  // namespace weft
