#include "program/partial.h"

#include <algorithm>
#include <cmath>

#include "base/dispatch.h"
#include "base/index.h"
#include "kernels/pointwise.h"

namespace weft {

namespace {

// Rounds no part of a sum: to a float at least as wide. Sums of integers wrap, which a wider one would undo.
bool keeps_sums(DType from, DType to) {
  if (from == to) return from != DType::kBool;
  return is_float(from) && (to == DType::kF64 || (to == DType::kF32 && from != DType::kF64));
}

// Never turns x <= y into x > y: integers must fit as they are, and floats must stay floats, since integers hold no NaN.
bool keeps_order(DType from, DType to) {
  if (from == to || from == DType::kBool || is_float(to)) return true;
  if (from == DType::kU8) return is_integer(to) && to != DType::kI8;
  if (from == DType::kI8) return to == DType::kI32 || to == DType::kI64;
  return (from == DType::kI32 || from == DType::kU32) && to == DType::kI64;
}

// The exponents of two that a float of this dtype has above one.
int exponents(DType dtype) { return dtype == DType::kF16 ? 16 : dtype == DType::kF64 ? 1024 : 128; }

// The state of one node of a map: the same on all processors, waiting for the reduction, or neither.
enum class State { kFixed, kPending, kBroken };

struct NodeView {
  const MapNode& node;
  std::vector<State> args;
  std::vector<const MapNode*> nodes;  // of the args

  bool pending(std::size_t i) const { return i < args.size() && args[i] == State::kPending; }
  bool fixed(std::size_t i) const { return i < args.size() && args[i] == State::kFixed; }
  bool is_literal(std::size_t i) const { return fixed(i) && nodes[i]->op == "literal"; }
  double literal(std::size_t i) const { return rounded(nodes[i]->literal.real(), nodes[i]->dtype); }
  bool zero(std::size_t i) const { return is_literal(i) && literal(i) == 0; }

  // A finite float: added to a number, it never makes NaN.
  bool finite(std::size_t i) const { return is_literal(i) && is_float(node.dtype) && std::isfinite(literal(i)); }
  // A float that keeps the order of numbers it is multiplied with: greater than zero, where zero would make NaN of
  // infinity, and not so small that a machine may take it for zero.
  bool positive(std::size_t i) const { return finite(i) && literal(i) >= std::ldexp(1.0, 2 - exponents(node.dtype)); }
  // What parts may be multiplied with (divided by) before they are summed. Integers wrap alike. The product of a part
  // and a large literal would overflow where the product of the sum does not.
  bool factor(std::size_t i) const {
    return fixed(i) && (!is_literal(i) || !is_float(node.dtype) ||
                        std::fabs(literal(i)) <= std::ldexp(1.0, exponents(node.dtype) / 8));
  }
  bool divisor(std::size_t i) const {
    return fixed(i) && (!is_literal(i) || std::fabs(literal(i)) >= std::ldexp(1.0, -exponents(node.dtype) / 8));
  }
};

// cast and select belong to the map; every other function says in its entry what passes it.
bool is_linear(const NodeView& n) {
  const auto pending_or_zero = [&](std::size_t i) { return n.pending(i) || n.zero(i); };
  if (n.node.op == "cast") return keeps_sums(n.nodes[0]->dtype, n.node.dtype);
  if (n.node.op == "select") return n.fixed(0) && pending_or_zero(1) && pending_or_zero(2);
  const Pointwise* f = find_pointwise(n.node.op);
  if (!f) return false;
  if (f->is(pointwise::kAdditive)) return pending_or_zero(0) && (f->arity == 1 || pending_or_zero(1));
  if (f->is(pointwise::kLinearInEach)) return (n.pending(0) && n.factor(1)) || (n.factor(0) && n.pending(1));
  return f->is(pointwise::kLinearInFirst) && n.pending(0) && n.divisor(1);
}

bool is_monotone(const NodeView& n, Reduce how) {
  if (n.node.op == "cast") return keeps_order(n.nodes[0]->dtype, n.node.dtype);
  if (n.node.op == "select") return n.fixed(0);
  const Pointwise* f = find_pointwise(n.node.op);
  if (!f) return false;
  if (f->is(pointwise::kIncreasing)) return true;
  if (f->is(pointwise::kShiftsFirst) && n.finite(1)) return true;
  if (f->is(pointwise::kShiftsSecond) && n.finite(0)) return true;
  if (f->is(pointwise::kScales)) return n.positive(0) || n.positive(1);
  const bool joins = f->is(pointwise::kJoinsMax) || f->is(pointwise::kJoinsMin);
  return joins &&
         (n.fixed(0) || n.fixed(1) || f->is(how == Reduce::kMax ? pointwise::kJoinsMax : pointwise::kJoinsMin));
}

State state_of(const NodeView& n, Reduce how) {
  const auto any = [&](State s) { return std::find(n.args.begin(), n.args.end(), s) != n.args.end(); };
  if (any(State::kBroken)) return State::kBroken;
  if (!any(State::kPending)) return State::kFixed;
  const bool passes = how == Reduce::kSum ? is_linear(n) : how != Reduce::kProduct && is_monotone(n, how);
  return passes ? State::kPending : State::kBroken;
}

bool any_of(const std::vector<bool>& pending) {
  return std::find(pending.begin(), pending.end(), true) != pending.end();
}

bool only(const std::vector<bool>& pending, std::size_t which) {
  for (std::size_t i = 0; i < pending.size(); ++i)
    if (pending[i] != (i == which)) return false;
  return which < pending.size();
}

bool all_of(const std::vector<bool>& pending) {
  return std::find(pending.begin(), pending.end(), false) == pending.end();
}

// One overload per kind of instruction; what has none lets nothing pass.
struct Passing {
  Reduce how;
  const std::vector<bool>& pending;

  bool operator()(const Map& operation) const {
    std::vector<State> states;
    for (const MapNode& node : operation.nodes) {
      NodeView view{node, {}, {}};
      for (int arg : node.args) {
        view.args.push_back(states[at(arg)]);
        view.nodes.push_back(&operation.nodes[at(arg)]);
      }
      const bool waits = node.op == "input" && pending[at(node.input)];
      states.push_back(waits ? State::kPending : state_of(view, how));
    }
    return !states.empty() && states.back() == State::kPending;
  }
  bool operator()(const Contract&) const { return how == Reduce::kSum && pending[0] != pending[1]; }
  bool operator()(const ReduceDims& operation) const { return operation.how == how; }
  bool operator()(const Scan& operation) const { return operation.how == how; }
  bool operator()(const Copy&) const { return true; }
  bool operator()(const View&) const { return true; }
  bool operator()(const Shard&) const { return true; }
  bool operator()(const Concat&) const { return all_of(pending); }
  bool operator()(const DynamicSlice&) const { return only(pending, 0); }
  bool operator()(const DynamicUpdate&) const { return pending[0] && pending[1] && !pending[2]; }
  bool operator()(const Gather&) const { return how != Reduce::kProduct && only(pending, 0); }
  bool operator()(const ScatterAdd&) const { return how == Reduce::kSum && only(pending, 1); }
  bool operator()(const Convolve&) const { return how == Reduce::kSum && pending[0] != pending[1]; }
  bool operator()(const Pool& operation) const {
    if (operation.kind == PoolKind::kMax) return how == Reduce::kMax;
    return how == Reduce::kSum && only(pending, operation.kind == PoolKind::kSum ? 0 : 2);
  }
  // Over other axes; the verifier sees to that.
  bool operator()(const AllReduce& operation) const { return operation.how == how && pending.size() == 1; }
  bool operator()(const ReduceScatter& operation) const { return operation.how == how && pending.size() == 1; }
  bool operator()(const AllGather&) const { return pending.size() == 1; }
  bool operator()(const AllToAll&) const { return true; }
  bool operator()(const Permute&) const { return true; }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

std::uint64_t bits(const Axes& axes) {
  std::uint64_t mask = 0;
  for (int axis : axes) mask |= std::uint64_t{1} << axis;
  return mask;
}

// Those of more than one processor.
std::uint64_t long_axes(const Mesh& mesh) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < mesh.axes().size(); ++i)
    if (mesh.axes()[i].size > 1) mask |= std::uint64_t{1} << i;
  return mask;
}

std::uint64_t declared(const Sharding& sharding) {
  std::uint64_t mask = bits(sharding.partial);
  for (const Axes& axes : sharding.dims) mask |= bits(axes);
  return mask;
}

}  // namespace

bool lets_pass(const Instr& instr, Reduce how, const std::vector<bool>& pending) {
  return any_of(pending) && std::visit(Passing{how, pending}, instr.operation);
}

namespace {

ByValue<std::uint64_t> hidden_in(const Program& program, const std::vector<std::uint64_t>& inputs, bool& together);

// What the outputs of a loop may hide: the carried values hide more from trip to trip until that changes no more.
std::vector<std::uint64_t> hidden_by_loop(const Instr& instr, const ByValue<std::uint64_t>& hidden, bool& together) {
  const Program& body = *body_of(instr);
  std::vector<std::uint64_t> inputs = {0};
  for (ValueId id : instr.inputs) inputs.push_back(hidden[id]);
  std::vector<std::uint64_t> carried(instr.outputs.size());
  bool changed = true;
  while (changed) {
    changed = false;
    const ByValue<std::uint64_t> inside = hidden_in(body, inputs, together);
    if (instr.as<Loop>()->stops && (inside[body.outputs.back().value] & long_axes(body.mesh)) != 0) together = false;
    for (std::size_t k = 0; k < carried.size(); ++k) {
      carried[k] = inputs[k + 1] | inside[body.outputs[k].value];
      changed |= carried[k] != inputs[k + 1];
      inputs[k + 1] = carried[k];
    }
  }
  return carried;
}

ByValue<std::uint64_t> hidden_in(const Program& program, const std::vector<std::uint64_t>& inputs, bool& together) {
  ByValue<std::uint64_t> hidden(program.values.size(), 0);
  for (std::size_t i = 0; i < inputs.size(); ++i) hidden[program.inputs[i].value] = inputs[i];
  for (const Instr& instr : program.body) {
    if (instr.is<Loop>()) {
      const std::vector<std::uint64_t> carried = hidden_by_loop(instr, hidden, together);
      for (std::size_t k = 0; k < carried.size(); ++k) hidden[instr.outputs[k]] = carried[k];
      continue;
    }
    if (const auto* fused = instr.as<Fused>()) {
      std::vector<std::uint64_t> operands;
      for (ValueId id : instr.inputs) operands.push_back(hidden[id]);
      const ByValue<std::uint64_t> inside = hidden_in(*fused->body, operands, together);
      for (std::size_t k = 0; k < instr.outputs.size(); ++k)
        hidden[instr.outputs[k]] = inside[fused->body->outputs[k].value];
      continue;
    }
    std::uint64_t varies = 0;
    for (ValueId id : instr.inputs) varies |= hidden[id] | declared(program.values[id].sharding);
    if (const auto* index = instr.as<AxisIndex>()) varies |= bits(index->axes);
    if (instr.is<Permute>()) varies |= bits(axes_of(instr));
    // A reduction or a gather makes its group equal.
    if (instr.is<AllReduce>() || instr.is<AllGather>()) varies &= ~bits(axes_of(instr));
    for (ValueId id : instr.outputs) hidden[id] = varies & ~declared(program.values[id].sharding);
  }
  return hidden;
}

}  // namespace

ByValue<std::uint64_t> hidden_axes(const Program& program) {
  bool together = true;
  return hidden_in(program, {}, together);
}

bool loops_stop_together(const Program& program) {
  bool together = true;
  hidden_in(program, {}, together);
  return together;
}

}  // namespace weft
