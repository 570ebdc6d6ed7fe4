#include "program/passes/rewrite.h"

#include <algorithm>

#include "program/attend.h"

namespace weft {

Uses::Uses(const Program& program) : users(program.values.size()), kept(program.values.size()) {
  for (std::size_t i = 0; i < program.body.size(); ++i)
    for (ValueId id : program.body[i].inputs) {
      std::vector<int>& of = users[at(id)];
      if (of.empty() || of.back() != static_cast<int>(i)) of.push_back(static_cast<int>(i));
    }
  for (const ProgramOutput& output : program.outputs) kept[at(output.value)] = true;
  for (const ProgramVariable& variable : program.variables)
    if (variable.update) kept[at(*variable.update)] = true;
}

int Uses::only_user(ValueId id) const { return users[at(id)].size() == 1 && !kept[at(id)] ? users[at(id)][0] : -1; }

std::vector<int> definitions_of(const Program& program) {
  std::vector<int> definitions(program.values.size(), -1);
  for (std::size_t i = 0; i < program.body.size(); ++i)
    for (ValueId id : program.body[i].outputs) definitions[at(id)] = static_cast<int>(i);
  return definitions;
}

ValueType type_of(const Program& program, ValueId id) {
  const Value& v = program.values[at(id)];
  return {v.dtype, v.shape, v.sharding};
}

std::int64_t bytes_of(const Program& program, ValueId id) {
  const Value& v = program.values[at(id)];
  return v.shape.elements() * static_cast<std::int64_t>(size_of(v.dtype));
}

ValueId add_value(Program& program, const std::string& name, ValueType type) {
  program.values.push_back({name, type.dtype, std::move(type.shape), std::move(type.sharding)});
  return static_cast<ValueId>(program.values.size()) - 1;
}

ValueId resolved(const std::vector<ValueId>& by, ValueId id) {
  while (at(id) < by.size() && by[at(id)] != id) id = by[at(id)];
  return id;
}

void replace_uses(Program& program, std::vector<ValueId> by) {
  for (std::size_t i = 0; i < by.size(); ++i) by[i] = resolved(by, static_cast<ValueId>(i));
  const auto replace = [&](ValueId& id) {
    if (at(id) < by.size()) id = by[at(id)];
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
  const Shape& shape = program.values[at(id)].shape;
  const auto reads = [&](int position) { return reads_as_it_lies(program.body[at(position)]); };
  const auto picks = [&](int position) {
    const Instr& user = program.body[at(position)];
    const auto* view = user.as<View>();
    if (!view || uses.kept[at(user.outputs[0])]) return false;
    return restrided(*view, program.values[at(user.outputs[0])].shape, shape, dense_strides(shape)).has_value() &&
           std::ranges::all_of(uses.users[at(user.outputs[0])], reads);
  };
  return !uses.kept[at(id)] &&
         std::ranges::all_of(uses.users[at(id)], [&](int position) { return reads(position) || picks(position); });
}

void make_pending(Sharding& sharding, const Axes& axes, Reduce how) {
  sharding.partial.insert(sharding.partial.end(), axes.begin(), axes.end());
  std::sort(sharding.partial.begin(), sharding.partial.end());
  sharding.pending = how;
}

Origin joined(Origin a, const Origin& b) {
  a.phase = std::max(a.phase, b.phase);
  for (const std::string& cause : b.causes)
    if (std::find(a.causes.begin(), a.causes.end(), cause) == a.causes.end()) a.causes.push_back(cause);
  return a;
}

}  // namespace weft
