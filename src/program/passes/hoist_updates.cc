#include <algorithm>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

class Hoist {
 public:
  explicit Hoist(Program program)
      : p_(std::move(program)), uses_(p_), ready_(p_.values.size(), -1), waits_(p_.values.size()) {
    for (const ProgramVariable& variable : p_.variables)
      if (variable.update) old_contents_of_.emplace_back(*variable.update, variable.value);
  }

  Program run() {
    std::vector<std::pair<int, Instr>> placed;  // after this position, in order
    for (int i = 0; i < static_cast<int>(p_.body.size()); ++i) {
      Instr& instr = p_.body[at(i)];
      const int to = may_move(instr) ? earliest(instr, i) : i;
      moved_to_.push_back(to);
      for (ValueId id : instr.outputs) {
        ready_[at(id)] = to;
        waits_[at(id)] = is_collective(instr) || reads_what_waits(instr);
      }
      placed.emplace_back(to, std::move(instr));
    }
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    p_.body.clear();
    for (auto& [position, instr] : placed) p_.body.push_back(std::move(instr));
    return std::move(p_);
  }

 private:
  static bool may_move(const Instr& instr) {
    return instr.origin.phase == Phase::kUpdate && !is_collective(instr) && !instr.is<Host>();
  }

  bool reads_what_waits(const Instr& instr) const {
    return std::any_of(instr.inputs.begin(), instr.inputs.end(), [&](ValueId id) { return waits_[at(id)]; });
  }

  // Behind everything it reads, and behind all who read the variable's old contents, so that it may be written over them.
  int earliest(const Instr& instr, int i) const {
    if (reads_what_waits(instr)) return i;
    int to = -1;
    for (ValueId id : instr.inputs) to = std::max(to, ready_[at(id)]);
    for (const auto& [update, old] : old_contents_of_) {
      if (std::find(instr.outputs.begin(), instr.outputs.end(), update) == instr.outputs.end()) continue;
      for (int user : uses_.users[at(old)])
        if (user < i) to = std::max(to, moved_to_[at(user)]);
    }
    return to < 0 ? i : to;
  }

  Program p_;
  Uses uses_;
  std::vector<int> moved_to_;                                 // by position
  std::vector<int> ready_;                                    // by value: the position behind which it is known
  std::vector<bool> waits_;                                   // by value: it comes from a collective, directly or not
  std::vector<std::pair<ValueId, ValueId>> old_contents_of_;  // an update and the variable's value
};

}  // namespace

Program hoist_updates(Program program, const PassOptions&) { return Hoist(std::move(program)).run(); }

}  // namespace weft
