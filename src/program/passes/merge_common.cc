#include <algorithm>
#include <unordered_map>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"
#include "program/text.h"

namespace weft {

namespace {

// The variables, and what is made of one alone: casts of it, copies, views. In a loop's body they are inputs.
ByValue<bool> copies_of_variables(const Program& p, bool in_loop) {
  ByValue<bool> is_copy(p.values.size());
  if (in_loop)
    for (const ProgramInput& input : p.inputs) is_copy[input.value] = true;
  for (const ProgramVariable& variable : p.variables) is_copy[variable.value] = true;
  for (const Instr& instr : p.body)
    if (instr.inputs.size() == 1 && instr.outputs.size() == 1) is_copy[instr.outputs[0]] = is_copy[instr.inputs[0]];
  return is_copy;
}

// A key is made of words and numbers, so that no two lists of them make one key.
void add_to(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void add_to(std::string& key, std::string_view word) {
  add_to(key, static_cast<std::int64_t>(word.size()));
  key += word;
}

void add_to(std::string& key, ValueId id) { add_to(key, static_cast<std::int64_t>(id.number())); }

template <class Item>
void add_to(std::string& key, const std::vector<Item>& items) {
  add_to(key, static_cast<std::int64_t>(items.size()));
  for (const Item& item : items) add_to(key, item);
}

void add_to(std::string& key, const Value& v) {
  add_to(key, static_cast<std::int64_t>(v.dtype));
  for (const Dim& dim : v.shape) {
    add_to(key, dim.name);
    add_to(key, dim.size);
  }
  add_to(key, v.sharding.dims);
  add_to(key, v.sharding.partial);
  if (v.sharding.is_partial()) add_to(key, static_cast<std::int64_t>(v.sharding.pending));
}

// Two instructions with one key give the same values. What is recomputed has keys of its own, or the merge would undo
// the recomputation; so has a variable that is gathered after the forward pass, or it would be kept all the while.
std::string key_of(const Program& p, const Instr& instr, const ByValue<bool>& is_copy) {
  std::vector<ValueId> inputs = instr.inputs;
  if (instr.is<Contract>()) std::sort(inputs.begin(), inputs.end());
  std::string key = work_text(p, instr);
  add_to(key, instr.origin.recompute);
  add_to(key, inputs);
  for (ValueId id : instr.outputs) add_to(key, p.values[id]);
  if (instr.is<AllGather>() && is_copy[instr.inputs[0]]) key += instr.origin.phase == Phase::kForward ? " f" : " b";
  return key;
}

}  // namespace

Program merge_common(Program p, const PassOptions& options) {
  const ByValue<bool> is_copy = copies_of_variables(p, options.in_loop);
  std::unordered_map<std::string, std::size_t> first;  // key -> position in the new body
  ByValue<ValueId> by = identity<ValueId>(p.values.size());
  std::vector<Instr> body;
  body.reserve(p.body.size());
  first.reserve(p.body.size());
  for (Instr& instr : p.body) {
    for (ValueId& id : instr.inputs) id = by[id];
    const auto [found, is_new] = instr.is<Host>() || body_of(instr) || instr.is<Done>()
                                     ? std::pair(first.end(), true)
                                     : first.emplace(key_of(p, instr, is_copy), body.size());
    if (is_new) {
      body.push_back(std::move(instr));
      continue;
    }
    Instr& earlier = body[found->second];
    earlier.origin = joined(std::move(earlier.origin), instr.origin);
    for (std::size_t i = 0; i < instr.outputs.size(); ++i) by[instr.outputs[i]] = earlier.outputs[i];
  }
  p.body = std::move(body);
  replace_uses(p, std::move(by));
  return p;
}

}  // namespace weft
