#include <algorithm>
#include <set>
#include <utility>

#include "base/index.h"
#include "base/str.h"
#include "program/fusible.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

// Maps and reductions that become one instruction, where its last member stands.
struct Group {
  bool open = false;
  int recompute = 0;
  std::vector<const Instr*> members = {};  // in the order of the program
  std::vector<ValueId> operands = {};      // from outside, in the order of their first use

  // It reads the value or gives it.
  bool holds(ValueId id) const {
    return std::ranges::find(operands, id) != operands.end() ||
           std::ranges::any_of(members, [&](const Instr* member) { return member->outputs[0] == id; });
  }

  void add(const Instr& instr) {
    for (ValueId id : instr.inputs)
      if (!holds(id)) operands.push_back(id);
    members.push_back(&instr);
  }
};

class Fuser {
 public:
  Fuser(Program program, const FusingRules& rules)
      : p_(std::move(program)), rules_(rules), uses_(p_), group_of_(p_.values.size(), -1), holders_(p_.values.size()) {}

  Program run() {
    for (std::size_t i = 0; i < p_.body.size(); ++i) visit(i);
    std::vector<const Group*> last(p_.body.size());
    std::vector<bool> gone(p_.body.size());
    for (const Group& group : groups_) {
      if (group.members.size() < 2) continue;
      for (const Instr* member : group.members) gone[position(*member)] = true;
      last[position(*group.members.back())] = &group;
    }
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      if (last[i]) body.push_back(fused(*last[i]));
      else if (!gone[i]) body.push_back(std::move(p_.body[i]));
    }
    p_.body = std::move(body);
    return std::move(p_);
  }

 private:
  bool may_fuse(const Instr& instr) const { return instr.is<Map>() || (rules_.reductions && instr.is<ReduceDims>()); }

  // What takes long enough that results before it should not wait for what is behind it.
  bool is_heavy(const Instr& instr) const { return !may_fuse(instr) && !is_view(instr); }

  // Whether the engine takes the group as one instruction.
  bool fits(const Group& group) const {
    return group.members.size() <= rules_.most_members && group.operands.size() <= rules_.most_inputs &&
           runs_in_one_sweep(p_.values, group.operands, group.members);
  }

  std::size_t position(const Instr& instr) const { return static_cast<std::size_t>(&instr - p_.body.data()); }
  Group& group(int g) { return groups_[at(g)]; }

  void visit(std::size_t i) {
    const Instr& instr = p_.body[i];
    if (is_heavy(instr)) recent_.clear();
    if (!may_fuse(instr)) {
      for (ValueId id : instr.inputs) close(group_of_[id]);
      return;
    }
    int home = -1;
    for (int g : open_groups_read_by(instr)) {
      if (home < 0 && join(g, i)) home = g;
      else if (home < 0 || !merge(home, g)) close(g);
    }
    if (home < 0) home = joined_by_operand(i);
    if (home < 0) home = founded(i);
    for (ValueId id : instr.outputs) group_of_[id] = home;
  }

  void close(int g) {
    if (g >= 0) group(g).open = false;
  }

  std::vector<int> open_groups_read_by(const Instr& instr) {
    std::vector<int> found;
    for (ValueId id : instr.inputs) {
      const int g = group_of_[id];
      if (g >= 0 && group(g).open && std::find(found.begin(), found.end(), g) == found.end()) found.push_back(g);
    }
    return found;
  }

  int founded(std::size_t i) {
    const int g = static_cast<int>(groups_.size());
    groups_.push_back({.open = true, .recompute = p_.body[i].origin.recompute});
    group(g).add(p_.body[i]);
    note(g, i);
    return g;
  }

  // The group has a member now, the i-th instruction.
  void note(int g, std::size_t i) {
    recent_.insert(g);
    for (const std::vector<ValueId>* ids : {&p_.body[i].inputs, &p_.body[i].outputs})
      for (ValueId id : *ids) holders_[id].push_back(g);
  }

  // A group that reads the same large operand, with nothing heavy in between: one sweep reads it once.
  int joined_by_operand(std::size_t i) {
    const Instr& instr = p_.body[i];
    std::int64_t largest = 2;
    for (ValueId id : instr.inputs) largest = std::max(largest, p_.values[id].shape.elements());
    std::set<int, std::greater<>> holders;  // the latest first
    for (ValueId id : instr.inputs) {
      if (p_.values[id].shape.elements() != largest) continue;
      const std::vector<int>& all = holders_[id];
      if (all.size() <= recent_.size()) {
        std::copy_if(all.begin(), all.end(), std::inserter(holders, holders.end()),
                     [&](int g) { return recent_.contains(g); });
      } else {
        std::copy_if(recent_.begin(), recent_.end(), std::inserter(holders, holders.end()),
                     [&](int g) { return group(g).holds(id); });
      }
    }
    for (int g : holders)
      if (group(g).open && join(g, i)) return g;
    return -1;
  }

  bool join(int g, std::size_t i) {
    Group& group = this->group(g);
    if (group.recompute != p_.body[i].origin.recompute || group.members.size() >= rules_.most_members) return false;
    const std::size_t operands = group.operands.size();
    group.add(p_.body[i]);
    if (fits(group)) {
      note(g, i);
      return true;
    }
    group.members.pop_back();
    group.operands.resize(operands);
    return false;
  }

  // Moves the members of `from` into `to`, which reads of them.
  bool merge(int to, int from) {
    Group &a = group(to), &b = group(from);
    if (a.recompute != b.recompute || a.members.size() + b.members.size() > rules_.most_members) return false;
    std::vector<const Instr*> members;
    std::ranges::merge(a.members, b.members, std::back_inserter(members));
    Group both{.open = a.open, .recompute = a.recompute};
    for (const Instr* member : members) both.add(*member);
    if (!fits(both)) return false;
    for (const Instr* member : b.members) {
      for (ValueId id : member->outputs) group_of_[id] = to;
      note(to, position(*member));
    }
    a = std::move(both);
    b = Group();
    recent_.erase(from);
    return true;
  }

  bool is_needed_outside(const Group& group, ValueId id) const {
    return uses_.kept[id] || std::ranges::any_of(uses_.users(id), [&](int user) {
             return !std::ranges::binary_search(group.members, &p_.body[at(user)]);
           });
  }

  // Takes the members out of the program.
  Instr fused(const Group& group) {
    Program body;
    body.mesh = p_.mesh;
    body.body.reserve(group.members.size());
    body.values.reserve(group.operands.size() + group.members.size());
    std::vector<ValueId> outside;  // for each value of the body: that of the program
    outside.reserve(body.values.capacity());
    const auto add = [&](ValueId id) {
      outside.push_back(id);
      return body.values.add(p_.values[id]);
    };
    std::vector<ValueId> results;
    Origin origin = group.members[0]->origin;
    for (const Instr* member : group.members) {
      origin = joined(std::move(origin), member->origin);
      Instr& inner = body.body.emplace_back(std::move(p_.body[position(*member)]));
      for (ValueId& id : inner.inputs) {
        const auto found = std::ranges::find(outside, id);
        const bool is_new = found == outside.end();
        id = is_new ? add(id) : ValueId(found - outside.begin());
        if (is_new) body.inputs.push_back({str("in", body.inputs.size()), id});
      }
      for (ValueId& id : inner.outputs) {
        const ValueId result = std::exchange(id, add(id));
        if (!is_needed_outside(group, result)) continue;
        body.outputs.push_back({str("out", results.size()), id});
        results.push_back(result);
      }
    }
    return {Fused{Body(std::move(body))}, group.operands, std::move(results), std::move(origin)};
  }

  Program p_;
  const FusingRules& rules_;
  Uses uses_;
  ByValue<int> group_of_;  // by value
  std::vector<Group> groups_;
  std::set<int> recent_;               // groups with a member behind the last heavy instruction
  ByValue<std::vector<int>> holders_;  // by value: groups that read or gave it when they took a member
};

}  // namespace

Program fuse(Program program, const PassOptions& options) {
  return options.target.fusing.maps ? Fuser(std::move(program), options.target.fusing).run() : program;
}

}  // namespace weft
