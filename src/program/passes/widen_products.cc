#include <algorithm>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"

namespace weft {

namespace {

// A map that is nothing but a cast to f32.
bool is_widening(const Instr& instr) {
  const auto* map = instr.as<Map>();
  return map && map->nodes.size() == 2 && map->nodes[1].op == "cast" && map->nodes[1].dtype == DType::kF32;
}

}  // namespace

Program widen_products(Program p, const PassOptions&) {
  const Uses uses(p);
  ByValue<ValueId> by = identity<ValueId>(p.values.size());
  for (Instr& instr : p.body) {
    if (!instr.is<Contract>()) continue;
    const ValueId id = instr.outputs[0];
    const DType dtype = p.values[id].dtype;
    const std::span<const int> users = uses.users(id);
    const bool narrow = dtype == DType::kBF16 || dtype == DType::kF16;
    if (!narrow || uses.kept[id] || users.empty()) continue;
    if (!std::ranges::all_of(users, [&](int user) { return is_widening(p.body[at(user)]); })) continue;
    p.values[id].dtype = DType::kF32;
    for (int user : users) by[p.body[at(user)].outputs[0]] = id;
  }
  std::erase_if(p.body,
                [&](const Instr& instr) { return !instr.outputs.empty() && by[instr.outputs[0]] != instr.outputs[0]; });
  replace_uses(p, std::move(by));
  return p;
}

}  // namespace weft
