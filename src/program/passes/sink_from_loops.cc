#include "program/passes/sink_from_loops.h"

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "program/passes/reduction_plan.h"

namespace weft {

namespace {

// One accumulator of a body: next = last + term, and nothing else looks at any of them.
struct Accumulator {
  std::size_t add = 0;  // position of the sum
  ValueId term;
};

bool adds_two(const Instr& instr) {
  const auto* map = instr.as<Map>();
  return map && instr.inputs.size() == 2 && map->nodes.size() == 3 && map->nodes[2].op == "add" &&
         map->nodes[0].op == "input" && map->nodes[1].op == "input" && map->nodes[0].input != map->nodes[1].input;
}

// The body of a loop, and who uses what in it. Instructions are taken out at the end, so that positions stay good.
class LoopBody {
 public:
  explicit LoopBody(Program& body)
      : body_(body), uses_(body), definitions_(definitions_of(body)), left_out_(body.body.size()) {
    for (const ProgramOutput& output : body.outputs) ++kept_times_[output.value];
  }

  std::optional<Accumulator> accumulator(std::size_t k) const {
    const ValueId last = body_.inputs[k + 1].value, next = body_.outputs[k].value;
    const int add = definitions_[next];
    if (add < 0 || !uses_.users(next).empty() || uses_.only_user(last) != add || !adds_two(body_.body[at(add)]))
      return std::nullopt;
    if (kept_times_.at(next) != 1) return std::nullopt;
    const Instr& sum = body_.body[at(add)];
    const ValueId term = sum.inputs[0] == last ? sum.inputs[1] : sum.inputs[0];
    if (term == last || uses_.only_user(term) != add) return std::nullopt;
    return Accumulator{at(add), term};
  }

  // The all_reduce that gives the value, if one does.
  const Instr* all_reduce_of(ValueId id) const {
    const Instr* instr = definitions_[id] < 0 ? nullptr : &body_.body[at(definitions_[id])];
    const auto* operation = instr ? instr->as<AllReduce>() : nullptr;
    return operation && operation->how == Reduce::kSum && instr->inputs.size() == 1 ? instr : nullptr;
  }

  // The sum takes what the all_reduce would reduce, and waits for it.
  void leave_out(const Instr& reduce, const Accumulator& sum, std::size_t k) {
    for (ValueId& id : body_.body[sum.add].inputs)
      if (id == reduce.outputs[0]) id = reduce.inputs[0];
    for (ValueId id : {body_.inputs[k + 1].value, body_.outputs[k].value})
      make_pending(body_.values[id].sharding, reduce.as<AllReduce>()->axes, Reduce::kSum);
    left_out_[at(definitions_[reduce.outputs[0]])] = true;
  }

  void finish() {
    std::size_t i = 0;
    std::erase_if(body_.body, [&](const Instr&) { return left_out_[i++]; });
  }

 private:
  Program& body_;
  Uses uses_;
  ByValue<int> definitions_;
  std::unordered_map<ValueId, int> kept_times_;  // how many outputs a value is
  std::vector<bool> left_out_;                   // by position
};

class LoopSinker {
 public:
  explicit LoopSinker(Program& program) : p_(program) {}

  bool run() {
    std::vector<Instr> body;
    bool changed = false;
    for (Instr& instr : p_.body) {
      after_.clear();
      if (instr.is<Loop>()) changed = sink(instr, body) || changed;
      for (ValueId id : instr.outputs) defined_[id] = body.size();
      body.push_back(std::move(instr));
      std::move(after_.begin(), after_.end(), std::back_inserter(body));
    }
    p_.body = std::move(body);
    return changed;
  }

 private:
  bool sink(Instr& loop, std::vector<Instr>& before) {
    Program& body = *body_of(loop);
    std::vector<std::size_t> sums;  // of the carried values, those that begin with zero
    for (std::size_t k = 0; k < loop.outputs.size(); ++k)
      if (is_zero(loop.inputs[k], before)) sums.push_back(k);
    std::vector<ValueId> terms;
    const LoopBody first(body);
    for (std::size_t k : sums)
      if (const std::optional<Accumulator> sum = first.accumulator(k); sum && !first.all_reduce_of(sum->term))
        terms.push_back(sum->term);
    if (!terms.empty()) land_reductions_on(body, terms, loop.as<Loop>()->trips);
    LoopBody now(body);
    bool changed = false;
    for (std::size_t k : sums) {
      const std::optional<Accumulator> sum = now.accumulator(k);
      const Instr* reduce = sum ? now.all_reduce_of(sum->term) : nullptr;
      if (!reduce) continue;
      reduce_after(loop, k, *reduce, before);
      now.leave_out(*reduce, *sum, k);
      changed = true;
    }
    now.finish();
    return changed;
  }

  void reduce_after(Instr& loop, std::size_t k, const Instr& reduce, std::vector<Instr>& before) {
    Value pending = p_.values[loop.outputs[k]];
    make_pending(pending.sharding, reduce.as<AllReduce>()->axes, Reduce::kSum);
    const ValueId zero = add_value(p_, pending.name, {pending.dtype, pending.shape, pending.sharding});
    const ValueId sum = add_value(p_, pending.name, {pending.dtype, pending.shape, pending.sharding});
    before.push_back({Map{{{.op = "literal", .dtype = pending.dtype}}}, {}, {zero}, loop.origin});
    after_.insert(after_.begin(), {*reduce.as<AllReduce>(), {sum}, {loop.outputs[k]}, reduce.origin});
    loop.inputs[k] = zero;
    loop.outputs[k] = sum;
  }

  bool is_zero(ValueId id, const std::vector<Instr>& before) const {
    const auto found = defined_.find(id);
    if (found == defined_.end()) return false;
    const auto* map = before[found->second].as<Map>();
    return map && map->nodes.size() == 1 && map->nodes[0].op == "literal" && map->nodes[0].literal == 0;
  }

  Program& p_;
  std::deque<Instr> after_;                           // what follows the loop at hand
  std::unordered_map<ValueId, std::size_t> defined_;  // the position before it that defines a value
};

}  // namespace

bool sink_from_loops(Program& program) {
  const bool has_loop = std::ranges::any_of(program.body, [](const Instr& instr) { return instr.is<Loop>(); });
  return has_loop && LoopSinker(program).run();
}

}  // namespace weft
