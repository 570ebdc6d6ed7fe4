#include "program/cost.h"

#include <algorithm>

#include "base/index.h"
#include "kernels/pointwise.h"
#include "program/attend.h"

namespace weft {

namespace {

const Value& value(const Program& p, ValueId id) { return p.values[id]; }

double elements(const Program& p, ValueId id) { return static_cast<double>(value(p, id).shape.elements()); }

double bytes(const Program& p, ValueId id) {
  return elements(p, id) * static_cast<double>(size_of(value(p, id).dtype));
}

double flops_of(const MapNode& node) {
  if (node.args.empty()) return 0;
  if (const Pointwise* function = find_pointwise(node.op)) return function->flops;
  return node.op == "select" ? 1 : 0;
}

// What attention does, from its operands' sizes.
struct AttendCost {
  AttendCost(const Program& p, const Instr& instr)
      : rules(*attend_rules(instr)),
        q(value(p, instr.inputs[0])),
        back(instr.is<AttendBack>()),
        per_score(bias_derivative(instr) >= 0 ? 13 : 12) {
    const Shape &k = value(p, instr.inputs[1]).shape, &v = value(p, instr.inputs[2]).shape;
    key = static_cast<double>(k.size_of(rules.key));
    own = static_cast<double>(v.size_of(rules.value));
    memory = static_cast<double>(k.size_of(rules.memory));
    scores = static_cast<double>(q.shape.elements()) / key * memory;
    if (!rules.causal) return;
    const std::size_t at = q.shape.position(rules.length);
    const double length = static_cast<double>(q.shape[at].size) * p.mesh.size(q.sharding.dims[at]);
    const double inside = std::min(length, memory);  // queries behind the memory's end see all of it
    seen = (inside * (inside + 1) / 2 + (length - inside) * memory) / (length * memory);
  }

  double executed() const { return scores * seen * (2 * (back ? 3 * key + 2 * own : key + own) + per_score); }
  double whole_products() const { return scores * 2 * (back ? 2 * key + 2 * own : key + own); }

  const AttendRules& rules;
  const Value& q;
  bool back;
  double per_score;
  double key = 0, own = 0, memory = 0, scores = 0, seen = 1;
};

// One overload per kind of instruction that computes; the others only move.
struct Flops {
  const Program& p;
  const Instr& instr;

  double entering() const {
    double sum = 0;
    for (ValueId id : instr.inputs) sum += elements(p, id);
    return sum;
  }
  double operator()(const Contract&) const {
    const Shape& x = value(p, instr.inputs[0]).shape;
    return 2 * static_cast<double>(x.plus(value(p, instr.inputs[1]).shape).elements());
  }
  double operator()(const Map& operation) const {
    double flops = 0;
    for (const MapNode& node : operation.nodes) flops += flops_of(node);
    return flops * elements(p, instr.outputs[0]);
  }
  // A multiply-add at every place and tap, those on padding too; every other dim of x is in y or the filter.
  double operator()(const Convolve&) const {
    const WindowRoles roles = roles_of(instr);
    return 2 * static_cast<double>(value(p, roles.y).shape.plus(value(p, roles.filter).shape).elements());
  }
  double operator()(const Pool& operation) const {
    double meetings = elements(p, roles_of(instr).y);
    for (const WindowDim& w : operation.windows) meetings *= static_cast<double>(w.size);
    return meetings;
  }
  double operator()(const Attend&) const { return AttendCost(p, instr).executed(); }
  double operator()(const AttendBack&) const { return AttendCost(p, instr).executed(); }
  double operator()(const ReduceDims&) const { return entering(); }
  double operator()(const Scan&) const { return entering(); }
  double operator()(const ScatterAdd&) const { return elements(p, instr.inputs[1]); }
  double operator()(const AllReduce&) const { return entering(); }
  double operator()(const ReduceScatter&) const { return entering(); }
  template <class Other>
  double operator()(const Other&) const {
    return 0;
  }
};

void add(std::vector<CollectiveCost>& all, const Program& p, const Instr& instr, std::int64_t times) {
  CollectiveCost one{name_of(instr),
                     text_of(axes_of(instr), p.mesh),
                     value(p, instr.inputs[0]).dtype,
                     instr.origin.phase,
                     0,
                     0,
                     0,
                     {}};
  const auto same = [&](const CollectiveCost& c) {
    return c.kind == one.kind && c.axes == one.axes && c.dtype == one.dtype && c.phase == one.phase;
  };
  auto found = std::find_if(all.begin(), all.end(), same);
  if (found == all.end()) found = all.insert(all.end(), std::move(one));
  for (ValueId id : instr.inputs) found->elements += times * value(p, id).shape.elements();
  found->bytes = found->elements * static_cast<std::int64_t>(size_of(found->dtype));
  found->count += static_cast<int>(times);
  for (const std::string& cause : instr.origin.causes)
    if (std::find(found->causes.begin(), found->causes.end(), cause) == found->causes.end())
      found->causes.push_back(cause);
}

}  // namespace

Cost cost_of(const Program& program, const Instr& instr) {
  if (is_view(instr) || instr.is<Done>()) return {};
  if (const auto* loop = instr.as<Loop>()) {
    const ProgramCost body = summarize(*loop->body);
    return {body.flops * static_cast<double>(loop->trips), body.bytes * static_cast<double>(loop->trips)};
  }
  Cost cost;
  if (const auto* fused = instr.as<Fused>()) {
    for (const Instr& member : fused->body->body)
      cost.flops += std::visit(Flops{*fused->body, member}, member.operation);
  } else {
    cost.flops = std::visit(Flops{program, instr}, instr.operation);
  }
  for (ValueId id : instr.inputs) cost.bytes += bytes(program, id);
  if (!is_collective(instr))
    for (ValueId id : instr.outputs) cost.bytes += bytes(program, id);
  return cost;
}

namespace {

void visit_times(const Program& program, std::int64_t times,
                 const std::function<void(const Program&, std::int64_t)>& visit) {
  visit(program, times);
  for (const Instr& instr : program.body)
    if (const auto* loop = instr.as<Loop>()) visit_times(*loop->body, times * loop->trips, visit);
}

}  // namespace

void visit_bodies(const Program& program, const std::function<void(const Program&, std::int64_t)>& visit) {
  visit_times(program, 1, visit);
}

ProgramCost summarize(const Program& program) {
  ProgramCost sum;
  visit_bodies(program, [&](const Program& p, std::int64_t times) {
    for (const Instr& instr : p.body) {
      if (instr.is<Loop>()) continue;  // visited by itself
      const Cost cost = cost_of(p, instr);
      const double flops = cost.flops * static_cast<double>(times);
      sum.flops += flops;
      if (instr.origin.recompute) sum.recomputed_flops += flops;
      double& products = sum.contract_flops[at(instr.origin.phase)];
      if (instr.is<Contract>() || instr.is<Convolve>()) products += flops;
      if (attend_rules(instr)) products += AttendCost(p, instr).whole_products() * static_cast<double>(times);
      if (is_collective(instr)) add(sum.collectives, p, instr, times);
      else sum.bytes += cost.bytes * static_cast<double>(times);
    }
  });
  return sum;
}

}  // namespace weft
