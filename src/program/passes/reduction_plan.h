// The possible positions of each all_reduce and their costs; part of the pass place_reductions.
//
// An all_reduce may move down through instructions that let its reduction pass, if every value on the way has no other
// use. So the paths down form trees. A value can be *made pending* for a key (axes and kind) if its instruction lets
// the reduction pass and enough of its operands are all_reduces with that key or can be made pending themselves.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "program/passes/rewrite.h"

namespace weft {

struct ReductionKey {
  Axes axes;
  Reduce how = Reduce::kSum;
  bool operator==(const ReductionKey&) const = default;
};

// What enters all_reduces, then how many there are. An element that goes on to be scattered counts half.
struct MoveCost {
  std::int64_t half_bytes = 0;
  int count = 0;
  auto operator<=>(const MoveCost&) const = default;
  MoveCost operator+(const MoveCost& other) const { return {half_bytes + other.half_bytes, count + other.count}; }
};

// How one value can be made pending.
struct ReductionPlan {
  ReductionKey key;
  bool can_land = true;          // the reduction may be done right after the value
  MoveCost land;                 // if it is
  MoveCost below;                // if it is done further up, in the best places
  std::vector<ValueId> pending;  // the operands to be made pending; none if the value is an all_reduce
  bool same_strides = true;      // the pending value has the strides of the reduced one

  bool is_all_reduce() const { return pending.empty(); }
  bool pays() const { return !is_all_reduce() && can_land && land < below; }
  MoveCost best() const { return pays() ? land : below; }
};

// Makes the reductions that each of these values stands on one, done right on it, where `times` their bytes is no less
// than its own bytes and that can be. False if nothing has changed.
bool land_reductions_on(Program& program, const std::vector<ValueId>& ids, std::int64_t times);

class ReductionPlans {
 public:
  explicit ReductionPlans(const Program& program);

  const std::vector<ReductionPlan>& of(ValueId id) const { return plans_[id]; }
  const ReductionPlan* find(ValueId id, const ReductionKey& key) const;
  const Uses& uses() const { return uses_; }
  const ByValue<int>& definitions() const { return definitions_; }

 private:
  void plan_all_reduce(const Instr& instr);
  void plan_through(const Instr& instr);
  std::vector<ReductionKey> keys_into(const Instr& instr) const;
  bool can_pass(const Instr& instr, const ReductionKey& key, const std::vector<ValueId>& pending) const;
  void add_plan(const Instr& instr, const ReductionKey& key, std::vector<ValueId> pending);
  MoveCost cost_of(ValueId id, const ReductionKey& key) const;
  bool varies(ValueId id, const Axes& axes) const;

  const Program& p_;
  Uses uses_;
  ByValue<int> definitions_;
  ValueStrides strides_;
  ByValue<std::uint64_t> hidden_;
  ByValue<std::vector<ReductionPlan>> plans_;  // of every value
};

}  // namespace weft
