#include <algorithm>
#include <set>

#include "base/str.h"
#include "program/cost.h"
#include "program/memory_plan.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"
#include "weft/error.h"

namespace weft {

namespace {

constexpr int kLongestChain = 32;  // instructions made again for one value

bool can_run_again(const Instr& instr, const Uses& uses) {
  if (std::ranges::any_of(instr.outputs, [&](ValueId id) { return uses.kept[id]; })) return false;
  return (instr.outputs.size() == 1 || instr.is<Fused>()) && !is_collective(instr) && !instr.is<Host>() &&
         !instr.is<Done>() && !instr.is<Loop>();
}

// A value that need not be kept over the place where most memory is in use.
struct Choice {
  ValueId value;
  int late = 0;            // position of its first use behind that place
  std::vector<int> chain;  // instructions to run again there, in order
  std::int64_t bytes = 0;  // that the place is rid of
  double cost = 0;         // flops and bytes moved

  bool operator<(const Choice& other) const {  // worse
    return static_cast<double>(bytes) / (cost + 1) < static_cast<double>(other.bytes) / (other.cost + 1);
  }
};

class RegionChooser {
 public:
  RegionChooser(const Program& program, const Target& target)
      : p_(program), plan_(plan_memory(program, target)), uses_(program), defined_(definitions_of(program)) {}

  const MemoryPlan& plan() const { return plan_; }

  // The best choice at the place where most is live; none if nothing helps there.
  std::optional<Choice> best() const {
    const int peak = plan_.peak_position;
    std::optional<Choice> best;
    for (const ValueId id : p_.values.ids())
      if (const std::optional<Choice> choice = choice_for(id, peak); choice && (!best || *best < *choice))
        best = choice;
    return best;
  }

 private:
  int storage(ValueId id) const { return plan_.storage_of[id]; }

  std::optional<Choice> choice_for(ValueId id, int peak) const {
    const int i = defined_[id];
    if (i < 0 || i >= peak || is_view(p_.body[at(i)]) || !can_run_again(p_.body[at(i)], uses_) || uses_.kept[id])
      return {};
    if (storage(id) == MemoryPlan::kExternal || p_.body[at(i)].origin.recompute) return {};
    Choice choice{.value = id, .late = static_cast<int>(p_.body.size()), .chain = {}};
    find_late_use(id, peak, choice.late);
    if (choice.late <= peak || choice.late == static_cast<int>(p_.body.size())) return {};
    const Storage& s = plan_.storages[at(storage(id))];
    if (s.last < choice.late) return {};
    std::set<int> chain;
    if (!add_chain(i, choice.late, chain)) return {};
    choice.chain.assign(chain.begin(), chain.end());
    choice.bytes = s.bytes;
    for (int k : chain) {
      const Cost cost = cost_of(p_, p_.body[at(k)]);
      choice.cost += cost.flops + cost.bytes;
    }
    return choice;
  }

  // The first use behind the peak, through views; -1 if a view must be kept.
  void find_late_use(ValueId id, int peak, int& late) const {
    for (int user : uses_.users(id)) {
      if (is_view(p_.body[at(user)])) {
        if (uses_.kept[p_.body[at(user)].outputs[0]]) late = -1;
        find_late_use(p_.body[at(user)].outputs[0], peak, late);
      } else if (user > peak) {
        late = std::min(late, user);
      }
    }
  }

  ValueId root_of(ValueId id) const {
    while (defined_[id] >= 0 && is_view(p_.body[at(defined_[id])])) id = p_.body[at(defined_[id])].inputs[0];
    return id;
  }

  // Whether the value still lies untouched at a position without living longer for that.
  bool is_there(ValueId id, int position) const {
    const ValueId root = root_of(id);
    if (storage(root) == MemoryPlan::kExternal) return true;
    const int last = uses_.kept[root] ? static_cast<int>(p_.body.size()) : last_use(root);
    return last >= position;
  }

  int last_use(ValueId id) const {
    int last = -1;
    for (int user : uses_.users(id))
      last = std::max(last, is_view(p_.body[at(user)]) ? last_use(p_.body[at(user)].outputs[0]) : user);
    return last;
  }

  // The instructions that give instruction i's result at `late` from what is there; false if there is no short way.
  bool add_chain(int i, int late, std::set<int>& chain) const {
    if (static_cast<int>(chain.size()) >= kLongestChain) return false;
    if (!chain.insert(i).second) return true;
    for (ValueId id : p_.body[at(i)].inputs) {
      if (is_there(id, late)) continue;
      const int definition = defined_[id];
      if (definition < 0 || !can_run_again(p_.body[at(definition)], uses_) || !add_chain(definition, late, chain))
        return false;
    }
    return true;
  }

  const Program& p_;
  const MemoryPlan plan_;
  const Uses uses_;
  const ByValue<int> defined_;
};

// Runs the chain again right before `late`; all from there on that reads the value reads the new one.
void apply(Program& p, const Choice& choice, int number) {
  ByValue<ValueId> again = identity<ValueId>(p.values.size());
  const auto clone_of = [&](const Instr& instr) {
    Instr copy = instr;
    copy.origin.phase = Phase::kRecompute;
    copy.origin.recompute = number;
    for (ValueId& id : copy.inputs) id = again[id];
    for (ValueId& id : copy.outputs) {
      const ValueId old = id;
      again[old] = id = add_value(p, p.values[old].name, type_of(p, old));
    }
    return copy;
  };
  std::vector<Instr> body(std::make_move_iterator(p.body.begin()),
                          std::make_move_iterator(p.body.begin() + choice.late));
  std::vector<Instr> rest(std::make_move_iterator(p.body.begin() + choice.late), std::make_move_iterator(p.body.end()));
  std::vector<Instr> chain;
  for (int i : choice.chain) chain.push_back(clone_of(body[at(i)]));
  // Of the chain only the value itself is used from here on; and views of it that were made before.
  const ValueId value = again[choice.value];
  again = identity<ValueId>(again.size());
  again[choice.value] = value;
  for (std::size_t i = 0, end = body.size(); i < end; ++i)
    if (is_view(body[i]) && again[body[i].inputs[0]] != body[i].inputs[0]) chain.push_back(clone_of(body[i]));
  std::move(chain.begin(), chain.end(), std::back_inserter(body));
  for (Instr& instr : rest) {
    for (ValueId& id : instr.inputs)
      if (again.has(id)) id = again[id];
    body.push_back(std::move(instr));
  }
  p.body = std::move(body);
}

int last_recompute(const Program& p) {
  int last = 0;
  for (const Instr& instr : p.body) last = std::max(last, instr.origin.recompute);
  return last;
}

}  // namespace

Program recompute_for_memory(Program p, const PassOptions& options) {
  if (options.arena_limit == 0) return p;
  int number = last_recompute(p);
  while (true) {
    const RegionChooser chooser(p, options.target);
    if (chooser.plan().arena_bytes <= options.arena_limit) return p;
    const std::optional<Choice> choice = chooser.best();
    if (!choice)
      throw UserError(
          {.code = "memory.step-over-limit",
           .what = str("the step needs ", chooser.plan().arena_bytes,
                       " bytes besides its variables, and recomputation cannot bring it to ", options.arena_limit),
           .where = str("mesh ", p.mesh, ", layout \"", p.layout, "\", the memory limit"),
           .fix = "use microbatches, a storage layout, more processors or a higher limit"});
    apply(p, *choice, ++number);
    p = drop_dead_code(std::move(p), options);
  }
}

}  // namespace weft
