#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

// Keeps the members of a joined collective that are needed. False if none is.
bool keep_needed(Instr& instr, const std::vector<bool>& needed) {
  if (instr.is<Host>()) return true;
  if (!instr.is<AllReduce>() && !instr.is<ReduceScatter>() && !instr.is<AllGather>()) {
    for (ValueId id : instr.outputs)
      if (needed[at(id)]) return true;
    return false;
  }
  std::vector<ValueId> inputs, outputs;
  for (std::size_t i = 0; i < instr.outputs.size(); ++i) {
    if (!needed[at(instr.outputs[i])]) continue;
    inputs.push_back(instr.inputs[i]);
    outputs.push_back(instr.outputs[i]);
  }
  instr.inputs = std::move(inputs);
  instr.outputs = std::move(outputs);
  return !instr.outputs.empty();
}

// Numbers the values in the order of their definition and forgets those that nothing defines.
void number_anew(Program& p) {
  std::vector<ValueId> number(p.values.size(), 0);
  std::vector<Value> values;
  const auto define = [&](ValueId& id) {
    values.push_back(std::move(p.values[at(id)]));
    id = number[at(id)] = static_cast<ValueId>(values.size()) - 1;
  };
  for (ProgramInput& input : p.inputs) define(input.value);
  for (ProgramVariable& variable : p.variables) define(variable.value);
  for (Instr& instr : p.body) {
    for (ValueId& id : instr.inputs) id = number[at(id)];
    for (ValueId& id : instr.outputs) define(id);
  }
  for (ProgramVariable& variable : p.variables)
    if (variable.update) variable.update = number[at(*variable.update)];
  for (ProgramOutput& output : p.outputs) output.value = number[at(output.value)];
  p.values = std::move(values);
}

}  // namespace

Program drop_dead_code(Program p, const PassOptions&) {
  std::vector<bool> needed = Uses(p).kept;
  std::vector<Instr> reversed;
  for (std::size_t i = p.body.size(); i-- > 0;) {
    Instr& instr = p.body[i];
    if (!keep_needed(instr, needed)) continue;
    for (ValueId id : instr.inputs) needed[at(id)] = true;
    reversed.push_back(std::move(instr));
  }
  p.body.assign(std::make_move_iterator(reversed.rbegin()), std::make_move_iterator(reversed.rend()));
  number_anew(p);
  return p;
}

}  // namespace weft
