#include "program/fusible.h"

#include <algorithm>
#include <array>

#include "base/index.h"

namespace weft {

namespace {

class RowPlanner {
 public:
  RowPlanner(const ByValue<Value>& values, std::span<const ValueId> operands, std::span<const Instr* const> members)
      : values_(values), operands_(operands), members_(members) {}

  // Whether there is a plan. The outputs decide only its order.
  bool find(std::span<const ProgramOutput> outputs) {
    if (members_.empty() || !find_full()) return false;
    return std::ranges::any_of(orders(outputs), [&](const Shape* order) {
      full_ = order;
      return full_ && in_order();
    });
  }

  // After find() has found it.
  RowPlan plan() const {
    RowPlan plan;
    const auto border = full_->begin() + static_cast<std::ptrdiff_t>(border_);
    plan.rows.assign(full_->begin(), border);
    plan.cols.assign(border, full_->end());
    plan.extents.assign(values_.size(), Extent::kScalar);
    plan.late.assign(values_.size(), false);
    for (const ValueId id : operands_) plan.extents[id] = operand_extent(shape(id));
    for (const Instr* instr : members_) plan.extents[instr->outputs[0]] = extent_of(shape(instr->outputs[0]));
    for (const ValueId id : late_) plan.late[id] = true;
    plan.whole_rows = whole_rows_;
    return plan;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const Shape& shape(ValueId id) const { return values_[id].shape; }
  bool is_full(const Shape& shape) const { return shape.rank() == full_->rank() && same_dims(shape, *full_); }

  bool in_order() {
    late_.clear();
    whole_rows_ = false;
    return find_border() && std::ranges::all_of(members_, [&](const Instr* instr) { return place(*instr); });
  }

  // Rule 2, but for the order.
  bool find_full() {
    std::int64_t most = -1;
    const auto offer = [&](ValueId id) {
      const Shape& s = shape(id);
      const std::int64_t elements = s.elements();
      if (elements < most || (elements == most && s.rank() <= full_->rank())) return;
      most = elements;
      full_ = &s;
    };
    for (const ValueId id : operands_) offer(id);
    for (const Instr* instr : members_) offer(instr->outputs[0]);
    const auto fits = [&](ValueId id) {
      return &shape(id) == full_ || std::ranges::all_of(shape(id), [&](const Dim& dim) { return full_->has(dim); });
    };
    return std::ranges::all_of(operands_, fits) &&
           std::ranges::all_of(members_, [&](const Instr* instr) { return fits(instr->outputs[0]); });
  }

  // The orders of the full shape that rule 2 allows, the preferred one first; null: there is no second.
  std::array<const Shape*, 2> orders(std::span<const ProgramOutput> outputs) const {
    for (const Instr* instr : members_)
      if (instr->is<ReduceDims>() && is_full(shape(instr->inputs[0]))) return {&shape(instr->inputs[0]), nullptr};
    for (const ProgramOutput& output : outputs)
      if (is_full(shape(output.value))) return {&shape(output.value), full_};
    return {full_, nullptr};
  }

  // All dims of `shape`, as a set, are those of the full shape from `begin` on.
  bool is_run(const Shape& shape, std::size_t begin) const {
    if (begin + shape.rank() > full_->rank()) return false;
    for (std::size_t d = begin; d < begin + shape.rank(); ++d)
      if (!shape.has((*full_)[d].name)) return false;
    return true;
  }

  // Rule 3: the first result that is not full and not a scalar tells.
  bool find_border() {
    border_ = kNone;
    for (const Instr* instr : members_) {
      const Shape& out = shape(instr->outputs[0]);
      if (out.empty() || out.rank() == full_->rank()) continue;
      std::size_t border = kNone;
      if (is_run(out, 0)) border = out.rank();
      else if (is_run(out, full_->rank() - out.rank())) border = full_->rank() - out.rank();
      if (border == kNone) return false;
      if (border_ == kNone) border_ = border;
      if (extent_of(out) == Extent::kScalar) return false;
    }
    if (border_ == kNone) border_ = full_->empty() ? 0 : full_->rank() - 1;
    return true;
  }

  // Of a result; kScalar for one that has dims but lies across the border.
  Extent extent_of(const Shape& shape) const {
    if (shape.empty()) return Extent::kScalar;
    if (shape.rank() == full_->rank()) return Extent::kFull;
    if (shape.rank() == border_ && is_run(shape, 0)) return Extent::kRow;
    if (shape.rank() + border_ == full_->rank() && is_run(shape, border_)) return Extent::kColumn;
    return Extent::kScalar;
  }

  Extent operand_extent(const Shape& shape) const {
    bool in_rows = false, in_cols = false;
    for (std::size_t d = 0; d < full_->rank(); ++d)
      if (shape.has((*full_)[d].name)) (d < border_ ? in_rows : in_cols) = true;
    return in_rows ? in_cols ? Extent::kFull : Extent::kRow : in_cols ? Extent::kColumn : Extent::kScalar;
  }

  // Rules 4 and 5.
  bool place(const Instr& instr) {
    const ValueId out = instr.outputs[0];
    const Extent extent = extent_of(shape(out));
    bool late =
        std::ranges::any_of(instr.inputs, [&](ValueId id) { return std::ranges::find(late_, id) != late_.end(); });
    if (instr.is<ReduceDims>()) {
      if (late) return false;
      const Shape& from = shape(instr.inputs[0]);
      const bool from_full = is_full(from) && !from.empty();
      const bool from_rows = !from.empty() && extent_of(from) == Extent::kRow;
      if (from_full ? extent == Extent::kFull : !(from_rows && extent == Extent::kScalar)) return false;
      late = extent != Extent::kRow;
      if (extent == Extent::kRow) whole_rows_ = true;
    }
    if (late && (extent == Extent::kFull || extent == Extent::kRow)) return false;
    if (late) late_.push_back(out);
    return true;
  }

  const ByValue<Value>& values_;
  std::span<const ValueId> operands_;
  std::span<const Instr* const> members_;
  const Shape* full_ = nullptr;
  std::size_t border_ = kNone;
  std::vector<ValueId> late_;
  bool whole_rows_ = false;
};

}  // namespace

std::optional<RowPlan> row_plan(const Program& body) {
  if (!body.variables.empty()) return {};
  std::vector<ValueId> operands;
  std::vector<const Instr*> members;
  operands.reserve(body.inputs.size());
  members.reserve(body.body.size());
  for (const ProgramInput& input : body.inputs) operands.push_back(input.value);
  for (const Instr& instr : body.body) {
    if (!instr.is<Map>() && !instr.is<ReduceDims>()) return {};
    members.push_back(&instr);
  }
  RowPlanner planner(body.values, operands, members);
  return planner.find(body.outputs) ? std::optional(planner.plan()) : std::nullopt;
}

bool runs_in_one_sweep(const ByValue<Value>& values, std::span<const ValueId> operands,
                       std::span<const Instr* const> members) {
  return RowPlanner(values, operands, members).find({});
}

}  // namespace weft
