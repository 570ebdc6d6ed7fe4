#include "program/passes/regroup_sums.h"

#include <algorithm>

namespace weft {

namespace {

struct Term {
  ValueId value;
  bool minus = false;
};

// The terms of an instruction that is one add, subtract or negative of unlike operands; none if it is anything else.
std::vector<Term> terms_of(const Instr& instr) {
  const auto* map = instr.as<Map>();
  if (!map) return {};
  const MapNode& result = map->nodes.back();
  if (result.op != "add" && result.op != "subtract" && result.op != "negative") return {};
  std::vector<Term> terms;
  for (int arg : result.args) {
    const MapNode& node = map->nodes[at(arg)];
    if (node.op != "input") return {};
    terms.push_back({instr.inputs[at(node.input)], false});
  }
  if (terms.size() == 2 && terms[0].value == terms[1].value) return {};
  terms.back().minus = result.op != "add";
  return terms;
}

class Regrouping {
 public:
  Regrouping(Program& program, const ReductionPlans& plans)
      : p_(program), plans_(plans), instead_(program.body.size()), removed_(program.body.size()) {}

  // No two trees have an instruction in common.
  bool run() {
    bool changed = false;
    for (std::size_t i = 0; i < p_.body.size(); ++i) changed = (is_root(i) && regroup(i)) || changed;
    if (changed) rewrite();
    return changed;
  }

 private:
  bool is_inner(ValueId id, const Value& like) const {
    const int definition = plans_.definitions()[id];
    return definition >= 0 && plans_.uses().only_user(id) >= 0 && same_type(p_.values[id], like) &&
           !terms_of(p_.body[at(definition)]).empty();
  }

  bool is_root(std::size_t i) const {
    if (terms_of(p_.body[i]).empty()) return false;
    const ValueId y = p_.body[i].outputs[0];
    const int user = plans_.uses().only_user(y);
    return user < 0 || terms_of(p_.body[at(user)]).empty() ||
           !same_type(p_.values[y], p_.values[p_.body[at(user)].outputs[0]]);
  }

  // The leaves of the tree, and the positions of its inner instructions.
  void flatten(const Instr& instr, bool minus, const Value& like) {
    for (const Term& term : terms_of(instr)) {
      const bool sign = minus != term.minus;
      if (!is_inner(term.value, like)) {
        leaves_.push_back({term.value, sign});
        continue;
      }
      const int definition = plans_.definitions()[term.value];
      inner_.push_back(at(definition));
      flatten(p_.body[at(definition)], sign, like);
    }
  }

  // What reducing for the key costs at and below this value as the tree stands now; only for values of the root's type.
  MoveCost cost_now(ValueId id, const ReductionKey& key, const Value& like, bool is_root) const {
    if ((is_root || plans_.uses().only_user(id) >= 0) && same_type(p_.values[id], like))
      if (const ReductionPlan* plan = plans_.find(id, key)) return plan->best();
    MoveCost sum;
    if (!is_root && !is_inner(id, like)) return sum;
    for (const Term& term : terms_of(p_.body[at(plans_.definitions()[id])]))
      sum = sum + cost_now(term.value, key, like, false);
    return sum;
  }

  bool regroup(std::size_t root) {
    const ValueId y = p_.body[root].outputs[0];
    const Value like = p_.values[y];
    leaves_.clear();
    inner_.clear();
    flatten(p_.body[root], false, like);
    std::vector<ReductionKey> tried;
    for (const Term& leaf : leaves_)
      for (const ReductionPlan& plan : plans_.of(leaf.value)) {
        const MoveCost once{2 * bytes_of(p_, y), 1};
        if (plan.key.how != Reduce::kSum || plans_.uses().only_user(leaf.value) < 0) continue;
        if (std::ranges::find(tried, plan.key) != tried.end()) continue;
        tried.push_back(plan.key);
        if (once < cost_now(y, plan.key, like, true) && split(plan.key, like)) {
          build(root, y);
          return true;
        }
      }
    return false;
  }

  // Sorts the leaves into those that can be made pending and the rest. False if that makes no new group.
  bool split(const ReductionKey& key, const Value& like) {
    const auto can = [&](const Term& leaf) {
      return plans_.uses().only_user(leaf.value) >= 0 && plans_.find(leaf.value, key) &&
             same_type(p_.values[leaf.value], like);
    };
    group_.clear();
    rest_.clear();
    for (const Term& leaf : leaves_) (can(leaf) ? group_ : rest_).push_back(leaf);
    return group_.size() > 1 && !rest_.empty();
  }

  // One instruction per addition, all at the root's place.
  void build(std::size_t root, ValueId y) {
    std::vector<Instr>& sum = instead_[root];
    const Instr old = p_.body[root];
    const ValueId group = append_sum(sum, old, group_);
    std::vector<Term> all{{group, false}};
    all.insert(all.end(), rest_.begin(), rest_.end());
    append_sum(sum, old, all);
    sum.back().outputs = {y};
    removed_[root] = true;
    for (std::size_t i : inner_) removed_[i] = true;
  }

  void rewrite() {
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      std::move(instead_[i].begin(), instead_[i].end(), std::back_inserter(body));
      if (!removed_[i]) body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
  }

  ValueId append_sum(std::vector<Instr>& to, const Instr& old, std::vector<Term> terms) {
    std::stable_partition(terms.begin(), terms.end(), [](const Term& term) { return !term.minus; });
    ValueId sum = terms[0].value;
    if (terms[0].minus) sum = append_one(to, old, "negative", {sum});
    for (std::size_t i = 1; i < terms.size(); ++i)
      sum = append_one(to, old, terms[i].minus ? "subtract" : "add", {sum, terms[i].value});
    return sum;
  }

  ValueId append_one(std::vector<Instr>& to, const Instr& old, const char* function, std::vector<ValueId> inputs) {
    const Value like = p_.values[old.outputs[0]];
    const ValueId id = add_value(p_, like.name, {like.dtype, like.shape, like.sharding});
    Map map{one_function(function, std::vector<DType>(inputs.size(), like.dtype), like.dtype)};
    to.push_back({std::move(map), std::move(inputs), {id}, old.origin});
    return id;
  }

  Program& p_;
  const ReductionPlans& plans_;
  std::vector<Term> leaves_, group_, rest_;
  std::vector<std::size_t> inner_;
  std::vector<std::vector<Instr>> instead_;  // by position: a root's new instructions
  std::vector<bool> removed_;                // by position
};

}  // namespace

bool regroup_sums(Program& program, const ReductionPlans& plans) { return Regrouping(program, plans).run(); }

}  // namespace weft
