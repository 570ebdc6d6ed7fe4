#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

constexpr int kMeanwhile = 4;  // large instructions that a collective has time for

bool is_large(const Instr& instr) {
  return instr.is<Contract>() || instr.is<Convolve>() || instr.is<Attend>() || instr.is<AttendBack>();
}

class Hoist {
 public:
  explicit Hoist(Program program) : p_(std::move(program)), uses_(p_), ready_(p_.values.size(), -1) {
    for (const ProgramVariable& variable : p_.variables)
      if (variable.update) old_contents_of_[*variable.update].push_back(variable.value);
    for (int i = 0; i < static_cast<int>(p_.body.size()); ++i)
      if (is_large(p_.body[at(i)])) large_.push_back(i);
  }

  Program run() {
    for (int i = 0; i < static_cast<int>(p_.body.size()); ++i) {
      const Instr& instr = p_.body[at(i)];
      const int to = may_move(instr) ? std::min(i, earliest(instr, i)) : i;
      moved_to_.push_back(to);
      for (ValueId id : instr.outputs) ready_[id] = is_collective(instr) ? finished(to) : to;
    }
    std::vector<int> order(p_.body.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int i) { return moved_to_[at(i)]; });
    std::vector<Instr> body;
    body.reserve(p_.body.size());
    for (int i : order) body.push_back(std::move(p_.body[at(i)]));
    p_.body = std::move(body);
    return std::move(p_);
  }

 private:
  static bool may_move(const Instr& instr) { return instr.origin.phase == Phase::kUpdate && !instr.is<Host>(); }

  // Where a collective that starts behind `position` has had time; the end if there is not that much work.
  int finished(int position) const {
    const auto next = std::upper_bound(large_.begin(), large_.end(), position);
    return large_.end() - next < kMeanwhile ? static_cast<int>(p_.body.size()) : next[kMeanwhile - 1];
  }

  // Behind everything it reads, and behind all who read the variable's old contents, so that it may be written over them.
  int earliest(const Instr& instr, int i) const {
    int to = -1;
    for (ValueId id : instr.inputs) to = std::max(to, ready_[id]);
    for (ValueId update : instr.outputs) {
      const auto found = old_contents_of_.find(update);
      if (found == old_contents_of_.end()) continue;
      for (ValueId old : found->second)
        for (int user : uses_.users(old))
          if (user < i) to = std::max(to, moved_to_[at(user)]);
    }
    return to < 0 ? i : to;
  }

  Program p_;
  Uses uses_;
  std::vector<int> large_;     // positions
  std::vector<int> moved_to_;  // by position
  ByValue<int> ready_;         // by value: the position behind which it is known
  std::unordered_map<ValueId, std::vector<ValueId>> old_contents_of_;  // by update: values of its variables
};

}  // namespace

Program hoist_updates(Program program, const PassOptions&) { return Hoist(std::move(program)).run(); }

}  // namespace weft
