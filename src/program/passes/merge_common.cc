#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <string_view>
#include <type_traits>
#include <unordered_map>

#include "program/each_field.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

// A key is made of words and numbers, so that no two lists of them make one key.
template <class Whole>
requires std::integral<Whole> || std::is_enum_v<Whole>
void add_to(std::string& key, Whole whole) {
  const auto number = static_cast<std::int64_t>(whole);
  key.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// Zeros of two signs are two numbers; every NaN is the same.
void add_to(std::string& key, double number) {
  add_to(key, std::bit_cast<std::int64_t>(std::isnan(number) ? std::nan("") : number));
}

void add_to(std::string& key, const Number& number) {
  add_to(key, number.real());
  add_to(key, number.is_whole() ? number.whole() : 0);
}

void add_to(std::string& key, std::string_view word) {
  add_to(key, word.size());
  key += word;
}

void add_to(std::string& key, ValueId id) { add_to(key, id.number()); }

void add_to(std::string& key, const WindowDim& w) {
  add_to(key, std::string_view(w.dim));
  add_to(key, std::string_view(w.filter));
  for (const std::int64_t number : {w.size, w.stride, w.dilation, w.before}) add_to(key, number);
}

template <class Item>
void add_to(std::string& key, const std::vector<Item>& items);

// The dtype of an operand is known by the operand.
void add_to(std::string& key, const MapNode& node) {
  add_to(key, std::string_view(node.op));
  if (node.op == "input") return add_to(key, node.input);
  add_to(key, node.dtype);
  if (node.op == "literal") return add_to(key, node.literal);
  add_to(key, std::string_view(node.dim));
  add_to(key, node.args);
}

template <class Item>
void add_to(std::string& key, const std::vector<Item>& items) {
  add_to(key, items.size());
  for (const Item& item : items) add_to(key, item);
}

void add_to(std::string& key, const Value& v) {
  add_to(key, v.dtype);
  for (const Dim& dim : v.shape) {
    add_to(key, std::string_view(dim.name));
    add_to(key, dim.size);
  }
  add_to(key, v.sharding.dims);
  add_to(key, v.sharding.partial);
  if (v.sharding.is_partial()) add_to(key, v.sharding.pending);
}

// Two instructions with one key give the same values. What is recomputed has keys of its own, or the merge would undo
// the recomputation; so has a variable that is gathered after the forward pass, or it would be kept all the while.
void make_key(std::string& key, const Program& p, const Instr& instr, const ByValue<bool>& is_copy) {
  key.clear();
  add_to(key, instr.operation.index());
  each_field(instr.operation, [&](const char*, const auto& field) { add_to(key, field); });
  add_to(key, instr.origin.recompute);
  if (instr.is<Contract>()) {
    add_to(key, std::min(instr.inputs[0], instr.inputs[1]));
    add_to(key, std::max(instr.inputs[0], instr.inputs[1]));
  } else {
    add_to(key, instr.inputs);
  }
  for (ValueId id : instr.outputs) add_to(key, p.values[id]);
  if (instr.is<AllGather>() && is_copy[instr.inputs[0]]) key += instr.origin.phase == Phase::kForward ? " f" : " b";
}

}  // namespace

Program merge_common(Program p, const PassOptions& options) {
  const ByValue<bool> is_copy = copies_of_variables(p, options.in_loop);
  std::unordered_map<std::string, std::size_t> first;  // key -> position in the new body
  ByValue<ValueId> by = identity<ValueId>(p.values.size());
  std::vector<Instr> body;
  body.reserve(p.body.size());
  first.reserve(p.body.size());
  std::string key;
  for (Instr& instr : p.body) {
    for (ValueId& id : instr.inputs) id = by[id];
    if (instr.is<Host>() || body_of(instr) || instr.is<Done>()) {
      body.push_back(std::move(instr));
      continue;
    }
    make_key(key, p, instr, is_copy);
    const auto [found, is_new] = first.try_emplace(key, body.size());
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
