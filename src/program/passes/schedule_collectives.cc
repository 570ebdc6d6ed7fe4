#include <algorithm>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

// Where an instruction goes: next to the one that stood at `position`, in this order there.
enum class Rank { kDone, kView, kInstr, kStart };
struct Slot {
  int position = 0;
  Rank rank = Rank::kInstr;
  bool operator<(const Slot& other) const {
    return position != other.position ? position < other.position : rank < other.rank;
  }
};

class Schedule {
 public:
  explicit Schedule(Program program)
      : p_(std::move(program)), uses_(p_), defined_(definitions_of(p_)), end_(static_cast<int>(p_.body.size())) {
    for (int i = 0; i < end_; ++i) slots_.push_back({i, Rank::kInstr});
  }

  Program run() {
    for (int i = 0; i < end_; ++i)
      if (is_collective(p_.body[at(i)])) place(i);
    std::vector<std::pair<Slot, Instr>> placed;
    for (int i = 0; i < end_; ++i) placed.emplace_back(slots_[at(i)], std::move(p_.body[at(i)]));
    std::move(dones_.begin(), dones_.end(), std::back_inserter(placed));
    std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    p_.body.clear();
    for (auto& [slot, instr] : placed) p_.body.push_back(std::move(instr));
    return std::move(p_);
  }

 private:
  void place(int i) {
    const Instr& instr = p_.body[at(i)];
    std::vector<int> views;
    int first_use = end_;
    for (ValueId id : instr.outputs) first_use = std::min(first_use, first_user(id, views));
    const int start = start_of(i);
    if (instr.is<AllGather>()) last_gathered_use_ = first_use;
    if (!works_between(start, i, first_use)) return;
    if (start < i) slots_[at(i)] = {start, Rank::kStart};
    for (int view : views)
      if (view < first_use) slots_[at(view)] = {first_use, Rank::kView};
    dones_.emplace_back(Slot{first_use, Rank::kDone}, Instr{Done{}, instr.outputs, {}, instr.origin});
  }

  // The first instruction but views that reads the value or a view of it; the views are listed.
  int first_user(ValueId id, std::vector<int>& views) const {
    int first = end_;
    for (int user : uses_.users(id)) {
      if (!is_view(p_.body[at(user)])) {
        first = std::min(first, user);
        continue;
      }
      views.push_back(user);
      first = std::min(first, first_user(p_.body[at(user)].outputs[0], views));
    }
    return first;
  }

  // The position after which the collective may start. One that reads what another gives stays: that is done there.
  int start_of(int i) const {
    int ready = -1;
    for (ValueId id : p_.body[at(i)].inputs) {
      const int definition = defined_[id];
      if (definition < 0) continue;
      int root = definition;
      while (root >= 0 && is_view(p_.body[at(root)])) root = defined_[p_.body[at(root)].inputs[0]];
      if (root >= 0 && is_collective(p_.body[at(root)])) return i;
      ready = std::max(ready, definition);
    }
    // A variable could be gathered at any time: one ahead hides the wire and holds little memory.
    if (p_.body[at(i)].is<AllGather>()) ready = std::max(ready, last_gathered_use_ - 1);
    return std::min(ready, i);
  }

  // Whether anything but views and other collectives stands between start and first use.
  bool works_between(int start, int i, int first_use) const {
    for (int k = start + 1; k < first_use; ++k)
      if (k != i && !is_view(p_.body[at(k)]) && !is_collective(p_.body[at(k)])) return true;
    return false;
  }

  Program p_;
  const Uses uses_;
  const ByValue<int> defined_;
  const int end_;
  std::vector<Slot> slots_;  // per instruction
  std::vector<std::pair<Slot, Instr>> dones_;
  int last_gathered_use_ = 0;
};

}  // namespace

Program schedule_collectives(Program p, const PassOptions&) { return Schedule(std::move(p)).run(); }

}  // namespace weft
