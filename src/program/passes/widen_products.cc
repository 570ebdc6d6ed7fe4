#include <algorithm>

#include "base/index.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

// A map that is nothing but a cast to f32.
bool is_widening(const Instr& instr) {
  const auto* map = instr.as<Map>();
  return map && map->nodes.size() == 2 && map->nodes[1].op == "cast" && map->nodes[1].dtype == DType::kF32;
}

bool is_large(const Program& p, const Instr& product) {
  const std::int64_t result = p.values[product.outputs[0]].shape.elements();
  return std::ranges::all_of(product.inputs, [&](ValueId in) { return p.values[in].shape.elements() < result; });
}

// A gather from the cast of a large product becomes the cast of a gather from the product: sweeps alone read the cast
// then, and it need not lie in memory.
void gather_before_widening(Program& p) {
  const ByValue<int> defined = definitions_of(p);
  const auto product_of = [&](const Instr& instr) -> const Instr* {
    const int cast = instr.is<Gather>() ? defined[instr.inputs[0]] : -1;
    const int product = cast >= 0 && is_widening(p.body[at(cast)]) ? defined[p.body[at(cast)].inputs[0]] : -1;
    const bool found = product >= 0 && p.body[at(product)].is<Contract>() && is_large(p, p.body[at(product)]);
    return found ? &p.body[at(product)] : nullptr;
  };
  std::vector<Instr> body;
  body.reserve(p.body.size());
  for (const Instr& instr : p.body) {
    body.push_back(instr);
    const Instr* product = product_of(instr);
    if (!product) continue;
    const ValueId wide = instr.outputs[0];
    ValueType type = type_of(p, wide);
    type.dtype = p.values[product->outputs[0]].dtype;
    const ValueId narrow = add_value(p, p.values[wide].name, type);
    body.back().inputs[0] = product->outputs[0];
    body.back().outputs[0] = narrow;
    body.push_back({p.body[at(defined[instr.inputs[0]])].operation, {narrow}, {wide}, instr.origin});
  }
  p.body = std::move(body);
}

}  // namespace

Program widen_products(Program p, const PassOptions& options) {
  if (!options.target.widens_large_products) gather_before_widening(p);
  const Uses uses(p);
  ByValue<ValueId> by = identity<ValueId>(p.values.size());
  for (Instr& instr : p.body) {
    if (!instr.is<Contract>()) continue;
    const ValueId id = instr.outputs[0];
    const DType dtype = p.values[id].dtype;
    const std::span<const int> users = uses.users(id);
    const bool narrow = dtype == DType::kBF16 || dtype == DType::kF16;
    if (!narrow || uses.kept[id] || users.empty()) continue;
    if (!options.target.widens_large_products && is_large(p, instr)) continue;
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
