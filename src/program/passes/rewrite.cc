#include "program/passes/rewrite.h"

#include <algorithm>

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
