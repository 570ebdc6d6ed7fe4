// Helpers of the passes: the uses of a value, and small edits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/index.h"
#include "program/builder.h"

namespace weft {

inline bool same_type(const Value& a, const Value& b) {
  return a.dtype == b.dtype && a.shape == b.shape && a.sharding == b.sharding;
}

// Whether each value is an output or an update of the program.
ByValue<bool> kept_values(const Program& program);

// Who uses each value.
struct Uses {
  explicit Uses(const Program& program);

  // Positions in the body, ascending, each once.
  std::span<const int> users(ValueId id) const {
    const std::size_t i = at(id.number());
    return std::span(list_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  // The one instruction that uses it, if the program itself does not keep it as an output or update; else -1.
  int only_user(ValueId id) const;

  ByValue<bool> kept;  // as kept_values() gives it

 private:
  std::vector<std::size_t> first_;  // per value, and one more: where its users begin in the list
  std::vector<int> list_;
};

// The element strides of every value, as strides_of gives them; only those of views take memory.
class ValueStrides {
 public:
  explicit ValueStrides(const Program& program);

  bool is_dense(ValueId id) const;
  std::vector<std::int64_t> of(ValueId id) const;
  void set(ValueId id, std::vector<std::int64_t> strides);

 private:
  const std::vector<std::int64_t>* other(ValueId id) const;

  const Program& p_;
  ByValue<int> others_of_;                         // per value: which of `others_`; -1: dense
  std::vector<std::vector<std::int64_t>> others_;  // of views
};

// The position in the body that defines each value; -1 for inputs and variables.
ByValue<int> definitions_of(const Program& program);

ValueType type_of(const Program& program, ValueId id);
std::int64_t bytes_of(const Program& program, ValueId id);
ValueId add_value(Program& program, const std::string& name, ValueType type);

// Every use of id becomes a use of by[id], again and again until by[id] is id.
void replace_uses(Program& program, ByValue<ValueId> by);
ValueId resolved(const ByValue<ValueId>& by, ValueId id);

// How a view of that shape looks when the dense value it sees comes to lie with other strides, one per dim of `value`.
// Nothing if it does more than take a range of each dim, perhaps under another name.
std::optional<View> restrided(const View& view, const Shape& seen, const Shape& value,
                              const std::vector<std::int64_t>& strides);

// The variables, and what is made of one alone: casts of it, copies, views. In a loop's body the inputs count as variables.
ByValue<bool> copies_of_variables(const Program& program, bool in_loop);

// Nothing but contractions, sweeps, copies and attention reads the value, perhaps through views that restrided() knows:
// its place in memory is nobody else's business.
bool lies_freely(const Program& program, const Uses& uses, ValueId id);

// Over these axes too the value now waits for `how`.
void make_pending(Sharding& sharding, const Axes& axes, Reduce how);

// The later phase, and the causes of both.
Origin joined(Origin a, const Origin& b);

}  // namespace weft
