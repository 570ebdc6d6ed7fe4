#include <algorithm>
#include <utility>

#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

bool is_narrow(DType dtype) { return dtype == DType::kBF16 || dtype == DType::kF16; }

// A map that is nothing but a cast to f32.
bool is_widening(const Instr& instr) {
  const auto* map = instr.as<Map>();
  return map && map->nodes.size() == 2 && map->nodes[1].op == "cast" && map->nodes[1].dtype == DType::kF32;
}

// A result as wide as activations: a product of a variable, in a program that trains. Twice its bytes would cost more than
// its rounding, which the values around it have too. A gradient of a variable is none: neither factor is a variable.
class Activations {
 public:
  Activations(const Program& p, const PassOptions& options)
      : trains_(!options.in_loop && std::ranges::any_of(p.body, [](const Instr& instr) {
          return instr.origin.phase == Phase::kBackward;
        })),
        is_copy_(copies_of_variables(p, options.in_loop)) {}

  bool has(const Instr& product) const {
    return trains_ && (is_copy_[product.inputs[0]] || is_copy_[product.inputs[1]]);
  }

 private:
  bool trains_;
  ByValue<bool> is_copy_;
};

// Picks from the narrow value what would be picked from its cast to f32, and casts that: the cast of all is then a part of
// the sweeps that read it.
void gather_before_casts(Program& p) {
  const ByValue<int> made_at = definitions_of(p);
  std::vector<Instr> body;
  body.reserve(p.body.size());
  for (std::size_t i = 0; i < p.body.size(); ++i) {
    Instr instr = p.body[i];
    const int from = instr.is<Gather>() ? made_at[instr.inputs[0]] : -1;
    if (from < 0 || !is_widening(p.body[at(from)]) || !is_narrow(p.values[p.body[at(from)].inputs[0]].dtype)) {
      body.push_back(std::move(instr));
      continue;
    }
    const ValueId narrow = p.body[at(from)].inputs[0];
    ValueType type = type_of(p, instr.outputs[0]);
    type.dtype = p.values[narrow].dtype;
    const ValueId picked = add_value(p, p.values[instr.outputs[0]].name + "/narrow", type);
    const ValueId wide = std::exchange(instr.outputs[0], picked);
    instr.inputs[0] = narrow;
    const Origin origin = instr.origin;
    body.push_back(std::move(instr));
    body.push_back({Map{one_function("cast", {type.dtype}, DType::kF32)}, {picked}, {wide}, origin});
  }
  p.body = std::move(body);
}

}  // namespace

Program widen_products(Program p, const PassOptions& options) {
  const Uses uses(p);
  const Activations activations(p, options);
  ByValue<ValueId> by = identity<ValueId>(p.values.size());
  for (Instr& instr : p.body) {
    if (!instr.is<Contract>()) continue;
    const ValueId id = instr.outputs[0];
    const DType dtype = p.values[id].dtype;
    const std::span<const int> users = uses.users(id);
    if (!is_narrow(dtype) || uses.kept[id] || users.empty() || activations.has(instr)) continue;
    if (!std::ranges::all_of(users, [&](int user) { return is_widening(p.body[at(user)]); })) continue;
    p.values[id].dtype = DType::kF32;
    for (int user : users) by[p.body[at(user)].outputs[0]] = id;
  }
  std::erase_if(p.body,
                [&](const Instr& instr) { return !instr.outputs.empty() && by[instr.outputs[0]] != instr.outputs[0]; });
  replace_uses(p, std::move(by));
  if (options.target.fusing.maps) gather_before_casts(p);
  return p;
}

}  // namespace weft
