#include <algorithm>

#include "program/attend.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

// A loop whose body prints is needed for that alone.
bool calls_host(const Instr& instr) {
  const Program* body = body_of(instr);
  return body && std::any_of(body->body.begin(), body->body.end(),
                             [](const Instr& i) { return i.is<Host>() || calls_host(i); });
}

// The carried values that are needed: by the outside, by what ends the loop, or for the next of a needed one.
std::vector<bool> needed_carried(const Instr& instr, const ByValue<bool>& needed) {
  const Program& body = *body_of(instr);
  std::vector<bool> carried;
  for (ValueId id : instr.outputs) carried.push_back(needed[id]);
  bool changed = true;
  while (changed) {
    changed = false;
    ByValue<bool> inside(body.values.size());
    for (std::size_t k = 0; k < body.outputs.size(); ++k)
      if (k >= carried.size() || carried[k]) inside[body.outputs[k].value] = true;
    for (auto i = body.body.rbegin(); i != body.body.rend(); ++i)
      if (i->is<Host>() || calls_host(*i) ||
          std::any_of(i->outputs.begin(), i->outputs.end(), [&](ValueId id) { return inside[id]; }))
        for (ValueId id : i->inputs) inside[id] = true;
    for (std::size_t k = 0; k < carried.size(); ++k)
      if (!carried[k] && inside[body.inputs[k + 1].value]) changed = carried[k] = true;
  }
  return carried;
}

template <class T>
void keep_marked(std::vector<T>& list, std::size_t first, const std::vector<bool>& keep) {
  std::size_t i = 0;
  std::erase_if(list, [&](const T&) {
    const std::size_t position = i++;
    return position >= first && position - first < keep.size() && !keep[position - first];
  });
}

// Forgets carried values that nothing needs, then what the body no longer reads.
void thin_loop(Instr& instr, const ByValue<bool>& needed, const PassOptions& options) {
  const std::vector<bool> carried = needed_carried(instr, needed);
  Program& body = *body_of(instr);
  const std::size_t kept = static_cast<std::size_t>(std::count(carried.begin(), carried.end(), true));
  keep_marked(instr.outputs, 0, carried);
  keep_marked(instr.inputs, 0, carried);
  keep_marked(body.outputs, 0, carried);
  keep_marked(body.inputs, 1, carried);
  body = drop_dead_code(std::move(body), options);
  const Uses uses(body);
  std::vector<bool> read;
  for (std::size_t i = kept + 1; i < body.inputs.size(); ++i)
    read.push_back(!uses.users(body.inputs[i].value).empty() || uses.kept[body.inputs[i].value]);
  keep_marked(instr.inputs, kept, read);
  keep_marked(body.inputs, kept + 1, read);
  body = drop_dead_code(std::move(body), options);
}

// Forgets results of a fused instruction that nothing needs, then what its body no longer reads.
void thin_fused(Instr& instr, const ByValue<bool>& needed, const PassOptions& options) {
  Program& body = *body_of(instr);
  ByValue<bool> kept, read;
  for (ValueId id : instr.outputs) kept.push_back(needed[id]);
  keep_marked(instr.outputs, 0, kept);
  keep_marked(body.outputs, 0, kept);
  body = drop_dead_code(std::move(body), options);
  const Uses uses(body);
  for (const ProgramInput& input : body.inputs) read.push_back(!uses.users(input.value).empty());
  keep_marked(instr.inputs, 0, read);
  keep_marked(body.inputs, 0, read);
  body = drop_dead_code(std::move(body), options);
}

// Keeps the members of a joined collective that are needed, and the derivative by a bias if it is. False if nothing is.
bool keep_needed(Instr& instr, const ByValue<bool>& needed) {
  if (instr.is<Host>() || calls_host(instr)) return true;
  if (instr.is<Done>()) {
    std::erase_if(instr.inputs, [&](ValueId id) { return !needed[id]; });
    return !instr.inputs.empty();
  }
  if (const int of_bias = bias_derivative(instr); of_bias >= 0 && !needed[instr.outputs[at(of_bias)]])
    instr.outputs.pop_back();
  if (!instr.is<AllReduce>() && !instr.is<ReduceScatter>() && !instr.is<AllGather>()) {
    for (ValueId id : instr.outputs)
      if (needed[id]) return true;
    return false;
  }
  std::vector<ValueId> inputs, outputs;
  for (std::size_t i = 0; i < instr.outputs.size(); ++i) {
    if (!needed[instr.outputs[i]]) continue;
    inputs.push_back(instr.inputs[i]);
    outputs.push_back(instr.outputs[i]);
  }
  instr.inputs = std::move(inputs);
  instr.outputs = std::move(outputs);
  return !instr.outputs.empty();
}

// Numbers the values in the order of their definition and forgets those that nothing defines.
void number_anew(Program& p) {
  ByValue<ValueId> number(p.values.size());
  ByValue<Value> values;
  values.reserve(p.values.size());
  const auto define = [&](ValueId& id) { id = number[id] = values.add(std::move(p.values[id])); };
  for (ProgramInput& input : p.inputs) define(input.value);
  for (ProgramVariable& variable : p.variables) define(variable.value);
  for (Instr& instr : p.body) {
    for (ValueId& id : instr.inputs) id = number[id];
    for (ValueId& id : instr.outputs) define(id);
  }
  for (ProgramVariable& variable : p.variables)
    if (variable.update) variable.update = number[*variable.update];
  for (ProgramOutput& output : p.outputs) output.value = number[output.value];
  p.values = std::move(values);
}

}  // namespace

Program drop_dead_code(Program p, const PassOptions& options) {
  ByValue<bool> needed = kept_values(p);
  std::size_t first = p.body.size();  // what is kept moves to the end of the body
  const auto keep = [&](Instr& instr) {
    if (&p.body[--first] != &instr) p.body[first] = std::move(instr);
  };
  for (std::size_t i = p.body.size(); i-- > 0;) {
    Instr& instr = p.body[i];
    if (!keep_needed(instr, needed)) continue;
    if (instr.is<Loop>()) thin_loop(instr, needed, options);
    if (instr.is<Fused>()) thin_fused(instr, needed, options);
    if (instr.is<Done>()) {
      keep(instr);
      continue;
    }
    for (ValueId id : instr.inputs) needed[id] = true;
    keep(instr);
  }
  p.body.erase(p.body.begin(), p.body.begin() + static_cast<std::ptrdiff_t>(first));
  number_anew(p);
  return p;
}

}  // namespace weft
