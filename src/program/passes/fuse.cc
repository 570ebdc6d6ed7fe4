#include <algorithm>
#include <set>
#include <unordered_map>
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
  std::vector<std::size_t> members;  // positions, ascending
  std::vector<ValueId> operands;     // from outside
  Program body;
  std::unordered_map<ValueId, ValueId> inside;  // a value of the program -> that of the body
};

class Fuser {
 public:
  Fuser(Program program, const FusingRules& rules)
      : p_(std::move(program)), rules_(rules), uses_(p_), group_of_(p_.values.size(), -1), holders_(p_.values.size()) {}

  Program run() {
    for (std::size_t i = 0; i < p_.body.size(); ++i) visit(i);
    std::vector<Group*> last(p_.body.size());
    std::vector<bool> gone(p_.body.size());
    for (Group& group : groups_) {
      if (group.members.size() < 2) continue;
      for (std::size_t i : group.members) gone[i] = true;
      last[group.members.back()] = &group;
    }
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (std::size_t i = 0; i < p_.body.size(); ++i) {
      if (last[i]) body.push_back(fused(std::move(*last[i])));
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
           row_plan(group.body);
  }

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
    groups_.emplace_back();
    group(g).open = true;
    group(g).recompute = p_.body[i].origin.recompute;
    group(g).members.push_back(i);
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
                     [&](int g) { return holds(group(g), id); });
      }
    }
    for (int g : holders)
      if (group(g).open && join(g, i)) return g;
    return -1;
  }

  bool holds(const Group& group, ValueId id) const {
    if (!group.body.body.empty()) return group.inside.contains(id);
    const Instr& only = p_.body[group.members[0]];
    return std::ranges::find(only.inputs, id) != only.inputs.end() ||
           std::ranges::find(only.outputs, id) != only.outputs.end();
  }

  bool join(int g, std::size_t i) {
    Group& group = this->group(g);
    if (group.recompute != p_.body[i].origin.recompute || group.members.size() >= rules_.most_members) return false;
    begin_body(group);
    const std::size_t values = group.body.values.size(), operands = group.operands.size();
    add(group, i);
    if (fits(group)) {
      note(g, i);
      return true;
    }
    remove_last(group, values, operands);
    return false;
  }

  // A group of one has no body: most of these stay alone.
  void begin_body(Group& group) const {
    if (!group.body.body.empty()) return;
    group.body.mesh = p_.mesh;
    for (const std::size_t i : std::exchange(group.members, {})) add(group, i);
  }

  // Undoes add(): the body had that many values and operands before.
  void remove_last(Group& group, std::size_t values, std::size_t operands) {
    group.body.values.resize(values);
    std::erase_if(group.inside, [&](const auto& pair) { return !group.body.values.has(pair.second); });
    group.body.inputs.resize(operands);
    group.operands.resize(operands);
    group.body.body.pop_back();
    group.members.pop_back();
  }

  // Moves the members of `from` into `to`, which reads of them.
  bool merge(int to, int from) {
    Group &a = group(to), &b = group(from);
    if (a.recompute != b.recompute || a.members.size() + b.members.size() > rules_.most_members) return false;
    std::vector<std::size_t> members;
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(), std::back_inserter(members));
    Group both;
    both.open = a.open;
    both.recompute = a.recompute;
    both.body.mesh = p_.mesh;
    for (std::size_t i : members) add(both, i);
    if (!fits(both)) return false;
    for (std::size_t i : b.members) {
      for (ValueId id : p_.body[i].outputs) group_of_[id] = to;
      note(to, i);
    }
    a = std::move(both);
    b = Group();
    recent_.erase(from);
    return true;
  }

  void add(Group& group, std::size_t i) const {
    Instr inner = p_.body[i];
    for (ValueId& id : inner.inputs) {
      const auto [found, is_new] = group.inside.emplace(id, static_cast<ValueId>(group.body.values.size()));
      if (is_new) {
        group.body.values.push_back(p_.values[id]);
        group.body.inputs.push_back({str("in", group.operands.size()), found->second});
        group.operands.push_back(id);
      }
      id = found->second;
    }
    for (ValueId& id : inner.outputs) {
      const auto inside = static_cast<ValueId>(group.body.values.size());
      group.body.values.push_back(p_.values[id]);
      group.inside[id] = inside;
      id = inside;
    }
    group.body.body.push_back(std::move(inner));
    group.members.push_back(i);
  }

  bool is_needed_outside(const Group& group, ValueId id) const {
    if (uses_.kept[id]) return true;
    return std::any_of(uses_.users(id).begin(), uses_.users(id).end(), [&](int user) {
      return !std::binary_search(group.members.begin(), group.members.end(), at(user));
    });
  }

  Instr fused(Group group) const {
    Instr instr{Fused{Body(std::move(group.body))}, group.operands, {}, p_.body[group.members[0]].origin};
    Program& body = *body_of(instr);
    for (std::size_t i : group.members) {
      instr.origin = joined(std::move(instr.origin), p_.body[i].origin);
      for (ValueId id : p_.body[i].outputs) {
        if (!is_needed_outside(group, id)) continue;
        body.outputs.push_back({str("out", instr.outputs.size()), group.inside.at(id)});
        instr.outputs.push_back(id);
      }
    }
    return instr;
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
