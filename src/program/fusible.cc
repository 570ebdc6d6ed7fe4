#include "program/fusible.h"

#include <algorithm>

#include "base/index.h"

namespace weft {

namespace {

class RowPlanner {
 public:
  explicit RowPlanner(const Program& body) : body_(body) {}

  std::optional<RowPlan> plan() {
    if (!body_.variables.empty() || body_.body.empty()) return {};
    for (const Instr& instr : body_.body)
      if (!instr.is<Map>() && !instr.is<ReduceDims>()) return {};
    if (!find_full()) return {};
    for (const Shape* order : orders()) {
      full_ = order;
      if (std::optional<RowPlan> plan = in_order()) return plan;
    }
    return {};
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const Shape& shape(ValueId id) const { return body_.values[id].shape; }
  bool is_full(const Shape& shape) const { return shape.rank() == full_->rank() && same_dims(shape, *full_); }

  std::optional<RowPlan> in_order() {
    if (!find_border()) return {};
    RowPlan plan;
    const auto border = full_->begin() + static_cast<std::ptrdiff_t>(border_);
    plan.rows.assign(full_->begin(), border);
    plan.cols.assign(border, full_->end());
    plan.extents.assign(body_.values.size(), Extent::kScalar);
    plan.late.assign(body_.values.size(), false);
    for (const ProgramInput& input : body_.inputs) plan.extents[input.value] = operand_extent(shape(input.value));
    for (const Instr& instr : body_.body)
      if (!place(instr, plan)) return {};
    return plan;
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
    for (const ProgramInput& input : body_.inputs) offer(input.value);
    for (const Instr& instr : body_.body) offer(instr.outputs[0]);
    const auto fits = [&](ValueId id) {
      return std::ranges::all_of(shape(id), [&](const Dim& dim) { return full_->has(dim); });
    };
    for (const ProgramInput& input : body_.inputs)
      if (!fits(input.value)) return false;
    for (const Instr& instr : body_.body)
      if (!fits(instr.outputs[0])) return false;
    return true;
  }

  // The orders of the full shape that rule 2 allows, the preferred one first.
  std::vector<const Shape*> orders() const {
    for (const Instr& instr : body_.body)
      if (instr.is<ReduceDims>() && is_full(shape(instr.inputs[0]))) return {&shape(instr.inputs[0])};
    for (const ProgramOutput& output : body_.outputs)
      if (is_full(shape(output.value))) return {&shape(output.value), full_};
    return {full_};
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
    for (const Instr& instr : body_.body) {
      const Shape& out = shape(instr.outputs[0]);
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
  bool place(const Instr& instr, RowPlan& plan) const {
    const ValueId out = instr.outputs[0];
    const Extent extent = extent_of(shape(out));
    bool late = std::ranges::any_of(instr.inputs, [&](ValueId id) { return plan.late[id]; });
    if (instr.is<ReduceDims>()) {
      if (late) return false;
      const Shape& from = shape(instr.inputs[0]);
      const bool from_full = is_full(from) && !from.empty();
      const bool from_rows = !from.empty() && extent_of(from) == Extent::kRow;
      if (from_full ? extent == Extent::kFull : !(from_rows && extent == Extent::kScalar)) return false;
      late = extent != Extent::kRow;
      if (extent == Extent::kRow) plan.whole_rows = true;
    }
    if (late && (extent == Extent::kFull || extent == Extent::kRow)) return false;
    plan.extents[out] = extent;
    plan.late[out] = late;
    return true;
  }

  const Program& body_;
  const Shape* full_ = nullptr;
  std::size_t border_ = kNone;
};

}  // namespace

std::optional<RowPlan> row_plan(const Program& body) { return RowPlanner(body).plan(); }

}  // namespace weft
