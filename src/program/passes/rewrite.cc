#include "program/passes/rewrite.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "language/shape_math.h"
#include "program/attend.h"

namespace weft {

ByValue<bool> kept_values(const Program& program) {
  ByValue<bool> kept(program.values.size());
  for (const ProgramOutput& output : program.outputs) kept[output.value] = true;
  for (const ProgramVariable& variable : program.variables)
    if (variable.update) kept[*variable.update] = true;
  return kept;
}

Uses::Uses(const Program& program) : kept(kept_values(program)), first_(program.values.size() + 1) {
  ByValue<int> last(program.values.size(), -1);  // the user that was met last
  std::vector<std::pair<ValueId, int>> all;      // value, user
  all.reserve(2 * program.body.size());
  for (int i = 0; i < static_cast<int>(program.body.size()); ++i)
    for (ValueId id : program.body[at(i)].inputs)
      if (std::exchange(last[id], i) != i) all.emplace_back(id, i);
  for (const auto& [id, user] : all) ++first_[at(id.number()) + 1];
  std::partial_sum(first_.begin(), first_.end(), first_.begin());
  list_.resize(first_.back());
  std::vector<std::size_t> next = first_;
  for (const auto& [id, user] : all) list_[next[at(id.number())]++] = user;
}

int Uses::only_user(ValueId id) const { return users(id).size() == 1 && !kept[id] ? users(id)[0] : -1; }

ValueStrides::ValueStrides(const Program& program) : p_(program), others_of_(program.values.size(), -1) {
  for (const Instr& instr : program.body) {
    if (const auto* view = instr.as<View>()) set(instr.outputs[0], view->strides);
    if (!instr.is<Shard>()) continue;
    const std::vector<std::int64_t>* whole = other(instr.inputs[0]);
    set(instr.outputs[0], whole ? *whole : dense_strides(program.values[instr.inputs[0]].shape));
  }
}

const std::vector<std::int64_t>* ValueStrides::other(ValueId id) const {
  return others_of_.has(id) && others_of_[id] >= 0 ? &others_[at(others_of_[id])] : nullptr;
}

bool ValueStrides::is_dense(ValueId id) const {
  const std::vector<std::int64_t>* strides = other(id);
  return !strides || weft::is_dense(p_.values[id].shape, *strides);
}

std::vector<std::int64_t> ValueStrides::of(ValueId id) const {
  const std::vector<std::int64_t>* strides = other(id);
  return strides ? *strides : dense_strides(p_.values[id].shape);
}

void ValueStrides::set(ValueId id, std::vector<std::int64_t> strides) {
  if (!others_of_.has(id)) others_of_.resize(at(id.number()) + 1, -1);
  others_of_[id] = static_cast<int>(others_.size());
  others_.push_back(std::move(strides));
}

ByValue<int> definitions_of(const Program& program) {
  ByValue<int> definitions(program.values.size(), -1);
  for (std::size_t i = 0; i < program.body.size(); ++i)
    for (ValueId id : program.body[i].outputs) definitions[id] = static_cast<int>(i);
  return definitions;
}

ValueType type_of(const Program& program, ValueId id) {
  const Value& v = program.values[id];
  return {v.dtype, v.shape, v.sharding};
}

std::int64_t bytes_of(const Program& program, ValueId id) {
  const Value& v = program.values[id];
  return v.shape.elements() * static_cast<std::int64_t>(size_of(v.dtype));
}

ValueId add_value(Program& program, const std::string& name, ValueType type) {
  return program.values.add({name, type.dtype, std::move(type.shape), std::move(type.sharding)});
}

ValueId resolved(const ByValue<ValueId>& by, ValueId id) {
  while (by.has(id) && by[id] != id) id = by[id];
  return id;
}

void replace_uses(Program& program, ByValue<ValueId> by) {
  for (const ValueId id : by.ids()) by[id] = resolved(by, id);
  const auto replace = [&](ValueId& id) {
    if (by.has(id)) id = by[id];
  };
  for (Instr& instr : program.body)
    for (ValueId& id : instr.inputs) replace(id);
  for (ProgramOutput& output : program.outputs) replace(output.value);
  for (ProgramVariable& variable : program.variables)
    if (variable.update) replace(*variable.update);
}

std::optional<View> restrided(const View& view, const Shape& seen, const Shape& value,
                              const std::vector<std::int64_t>& strides) {
  const std::vector<std::int64_t> dense = dense_strides(value);
  std::vector<std::int64_t> room(value.rank(), 0);  // indices from the view's first on; 0 where a dim is taken
  View now{0, view.strides};
  std::int64_t rest = view.offset;
  for (std::size_t d = 0; d < value.rank(); ++d) {
    now.offset += rest / dense[d] * strides[d];
    room[d] = value[d].size - rest / dense[d];
    rest %= dense[d];
  }
  if (view.offset < 0 || std::ranges::any_of(room, [](std::int64_t left) { return left < 1; })) return std::nullopt;
  for (std::size_t i = 0; i < seen.rank(); ++i) {
    if (seen[i].size == 1) continue;
    std::size_t d = 0;
    while (d < value.rank() && (dense[d] != view.strides[i] || room[d] < seen[i].size)) ++d;
    if (d == value.rank()) return std::nullopt;
    now.strides[i] = strides[d];
    room[d] = 0;
  }
  return now;
}

namespace {

bool reads_as_it_lies(const Instr& user) {
  return user.is<Contract>() || user.is<Map>() || user.is<ReduceDims>() || user.is<Copy>() || attend_rules(user);
}

}  // namespace

bool lies_freely(const Program& program, const Uses& uses, ValueId id) {
  const Shape& shape = program.values[id].shape;
  const auto reads = [&](int position) { return reads_as_it_lies(program.body[at(position)]); };
  const auto picks = [&](int position) {
    const Instr& user = program.body[at(position)];
    const auto* view = user.as<View>();
    if (!view || uses.kept[user.outputs[0]]) return false;
    return restrided(*view, program.values[user.outputs[0]].shape, shape, dense_strides(shape)).has_value() &&
           std::ranges::all_of(uses.users(user.outputs[0]), reads);
  };
  return !uses.kept[id] &&
         std::ranges::all_of(uses.users(id), [&](int position) { return reads(position) || picks(position); });
}

void make_pending(Sharding& sharding, const Axes& axes, Reduce how) {
  sharding.partial.insert(sharding.partial.end(), axes.begin(), axes.end());
  std::sort(sharding.partial.begin(), sharding.partial.end());
  sharding.pending = how;
}

ByValue<bool> copies_of_variables(const Program& p, bool in_loop) {
  ByValue<bool> is_copy(p.values.size());
  if (in_loop)
    for (const ProgramInput& input : p.inputs) is_copy[input.value] = true;
  for (const ProgramVariable& variable : p.variables) is_copy[variable.value] = true;
  for (const Instr& instr : p.body)
    if (instr.inputs.size() == 1 && instr.outputs.size() == 1) is_copy[instr.outputs[0]] = is_copy[instr.inputs[0]];
  return is_copy;
}

Origin joined(Origin a, const Origin& b) {
  a.phase = std::max(a.phase, b.phase);
  for (const std::string& cause : b.causes)
    if (std::find(a.causes.begin(), a.causes.end(), cause) == a.causes.end()) a.causes.push_back(cause);
  return a;
}

}  // namespace weft
