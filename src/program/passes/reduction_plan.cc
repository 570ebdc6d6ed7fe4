#include "program/passes/reduction_plan.h"

#include <algorithm>

#include "program/partial.h"

namespace weft {

namespace {

bool contains(const auto& list, const auto& item) { return std::find(list.begin(), list.end(), item) != list.end(); }

// Collectives that a reduction over other axes sinks through: those that make less of what they get.
bool may_sink_through(const Instr& instr) {
  return instr.outputs.size() == 1 && (!is_collective(instr) || instr.is<ReduceScatter>());
}

}  // namespace

ReductionPlans::ReductionPlans(const Program& program)
    : p_(program),
      uses_(program),
      definitions_(definitions_of(program)),
      strides_(program),
      hidden_(hidden_axes(program)),
      plans_(program.values.size()) {
  for (const Instr& instr : p_.body) {
    plan_all_reduce(instr);
    plan_through(instr);
  }
}

const ReductionPlan* ReductionPlans::find(ValueId id, const ReductionKey& key) const {
  for (const ReductionPlan& plan : plans_[id])
    if (plan.key == key) return &plan;
  return nullptr;
}

// A reduction whose result goes to a shard over its axes will be a reduce_scatter.
MoveCost ReductionPlans::cost_of(ValueId id, const ReductionKey& key) const {
  const int user = uses_.only_user(id);
  const auto* shard = user < 0 ? nullptr : p_.body[at(user)].as<Shard>();
  const bool scatters =
      shard && std::any_of(shard->axes.begin(), shard->axes.end(), [&](int axis) { return contains(key.axes, axis); });
  return {bytes_of(p_, id) * (scatters ? 1 : 2), 1};
}

void ReductionPlans::plan_all_reduce(const Instr& instr) {
  const auto* operation = instr.as<AllReduce>();
  if (!operation || instr.inputs.size() != 1) return;
  const ValueId x = instr.inputs[0], y = instr.outputs[0];
  ReductionPlan plan{.key = {operation->axes, operation->how}, .land = {}, .below = {}, .pending = {}};
  plan.land = plan.below = cost_of(y, plan.key);
  plan.same_strides = strides_.of(x) == strides_.of(y);
  plans_[y].push_back(std::move(plan));
}

std::vector<ReductionKey> ReductionPlans::keys_into(const Instr& instr) const {
  std::vector<ReductionKey> keys;
  for (ValueId id : instr.inputs)
    if (uses_.only_user(id) >= 0)
      for (const ReductionPlan& plan : plans_[id])
        if (!contains(keys, plan.key)) keys.push_back(plan.key);
  return keys;
}

void ReductionPlans::plan_through(const Instr& instr) {
  if (!may_sink_through(instr)) return;
  for (const ReductionKey& key : keys_into(instr)) {
    std::vector<ValueId> pending;
    for (ValueId id : instr.inputs)
      if (uses_.only_user(id) >= 0 && find(id, key) && !contains(pending, id)) pending.push_back(id);
    if (can_pass(instr, key, pending)) {
      add_plan(instr, key, std::move(pending));
      continue;
    }
    // Not all of them at once, as in a product: the one that would save most.
    std::erase_if(pending, [&](ValueId id) { return !can_pass(instr, key, {id}); });
    const auto most = std::max_element(pending.begin(), pending.end(), [&](ValueId a, ValueId b) {
      return find(a, key)->best() < find(b, key)->best();
    });
    if (most != pending.end()) add_plan(instr, key, {*most});
  }
}

bool ReductionPlans::varies(ValueId id, const Axes& axes) const {
  return std::any_of(axes.begin(), axes.end(),
                     [&](int axis) { return p_.values[id].sharding.uses(axis) || (hidden_[id] >> axis & 1); });
}

bool ReductionPlans::can_pass(const Instr& instr, const ReductionKey& key, const std::vector<ValueId>& pending) const {
  std::vector<bool> marked;
  for (ValueId id : instr.inputs) {
    marked.push_back(contains(pending, id));
    if (!marked.back() && varies(id, key.axes)) return false;
    if (marked.back() && is_view(instr) && !find(id, key)->same_strides) return false;
  }
  const Sharding& out = p_.values[instr.outputs[0]].sharding;
  if (varies(instr.outputs[0], key.axes) || (out.is_partial() && out.pending != key.how)) return false;
  return lets_pass(instr, key.how, marked);
}

void ReductionPlans::add_plan(const Instr& instr, const ReductionKey& key, std::vector<ValueId> pending) {
  const ValueId y = instr.outputs[0];
  ReductionPlan plan{.key = key, .land = cost_of(y, key), .below = {}, .pending = std::move(pending)};
  for (ValueId id : plan.pending) plan.below = plan.below + find(id, key)->best();
  // What an all_reduce gives is dense; views of y may count on other strides.
  const bool is_viewed =
      std::any_of(uses_.users(y).begin(), uses_.users(y).end(), [&](int user) { return is_view(p_.body[at(user)]); });
  plan.can_land = !is_viewed || strides_.is_dense(y);
  plans_[y].push_back(std::move(plan));
}

}  // namespace weft
