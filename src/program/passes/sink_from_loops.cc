#include "program/passes/sink_from_loops.h"

#include <algorithm>

#include "program/passes/reduction_plan.h"

namespace weft {

namespace {

// One accumulator of a body: next = last + term, and nothing else looks at any of them.
struct Accumulator {
  std::size_t add = 0;  // position of the sum
  ValueId term = 0;
};

bool adds_two(const Instr& instr) {
  const auto* map = instr.as<Map>();
  return map && instr.inputs.size() == 2 && map->nodes.size() == 3 && map->nodes[2].op == "add" &&
         map->nodes[0].op == "input" && map->nodes[1].op == "input" && map->nodes[0].input != map->nodes[1].input;
}

std::optional<Accumulator> accumulator(const Program& body, std::size_t k) {
  const Uses uses(body);
  const std::vector<int> definitions = definitions_of(body);
  const ValueId last = body.inputs[k + 1].value, next = body.outputs[k].value;
  const int add = definitions[at(next)];
  if (add < 0 || !uses.users[at(next)].empty() || uses.only_user(last) != add || !adds_two(body.body[at(add)]))
    return std::nullopt;
  if (std::count_if(body.outputs.begin(), body.outputs.end(), [&](const auto& o) { return o.value == next; }) != 1)
    return std::nullopt;
  const Instr& sum = body.body[at(add)];
  const ValueId term = sum.inputs[0] == last ? sum.inputs[1] : sum.inputs[0];
  if (term == last || uses.only_user(term) != add) return std::nullopt;
  return Accumulator{at(add), term};
}

// The position of the all_reduce that gives the value, if one does.
int all_reduce_of(const Program& body, ValueId id) {
  const int i = definitions_of(body)[at(id)];
  if (i < 0) return -1;
  const auto* operation = body.body[at(i)].as<AllReduce>();
  return operation && operation->how == Reduce::kSum && body.body[at(i)].inputs.size() == 1 ? i : -1;
}

class LoopSinker {
 public:
  explicit LoopSinker(Program& program) : p_(program) {}

  bool run() {
    std::vector<Instr> body;
    bool changed = false;
    for (Instr& instr : p_.body) {
      after_.clear();
      if (instr.is<Loop>())
        for (std::size_t k = 0; k < instr.outputs.size(); ++k) changed = sink(instr, k, body) || changed;
      body.push_back(std::move(instr));
      std::move(after_.begin(), after_.end(), std::back_inserter(body));
    }
    p_.body = std::move(body);
    return changed;
  }

 private:
  bool sink(Instr& loop, std::size_t k, std::vector<Instr>& before) {
    Program& body = *body_of(loop);
    const ValueId first = loop.inputs[k];
    if (!is_zero(first, before)) return false;
    std::optional<Accumulator> found = accumulator(body, k);
    if (!found) return false;
    if (all_reduce_of(body, found->term) < 0 && land_reduction_on(body, found->term, loop.as<Loop>()->trips))
      found = accumulator(body, k);
    const int position = found ? all_reduce_of(body, found->term) : -1;
    if (position < 0) return false;
    const Instr reduce = body.body[at(position)];
    const Axes axes = reduce.as<AllReduce>()->axes;
    for (ValueId& id : body.body[found->add].inputs)
      if (id == reduce.outputs[0]) id = reduce.inputs[0];
    body.body.erase(body.body.begin() + position);
    make_pending(body.values[at(body.inputs[k + 1].value)].sharding, axes, Reduce::kSum);
    make_pending(body.values[at(body.outputs[k].value)].sharding, axes, Reduce::kSum);

    const Value whole = p_.values[at(loop.outputs[k])];
    Value pending = whole;
    make_pending(pending.sharding, axes, Reduce::kSum);
    const ValueId zero = add_value(p_, pending.name, {pending.dtype, pending.shape, pending.sharding});
    const ValueId sum = add_value(p_, pending.name, {pending.dtype, pending.shape, pending.sharding});
    before.push_back({Map{{{.op = "literal", .dtype = pending.dtype}}}, {}, {zero}, loop.origin});
    after_.insert(after_.begin(), {*reduce.as<AllReduce>(), {sum}, {loop.outputs[k]}, reduce.origin});
    loop.inputs[k] = zero;
    loop.outputs[k] = sum;
    return true;
  }

  static bool is_zero(ValueId id, const std::vector<Instr>& before) {
    const auto defines = [&](const Instr& i) {
      return std::find(i.outputs.begin(), i.outputs.end(), id) != i.outputs.end();
    };
    const auto found = std::find_if(before.rbegin(), before.rend(), defines);
    if (found == before.rend()) return false;
    const auto* map = found->as<Map>();
    return map && map->nodes.size() == 1 && map->nodes[0].op == "literal" && map->nodes[0].literal == 0;
  }

  Program& p_;
  std::vector<Instr> after_;  // what follows the loop at hand
};

}  // namespace

bool sink_from_loops(Program& program) { return LoopSinker(program).run(); }

}  // namespace weft
