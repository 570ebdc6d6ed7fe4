#include <algorithm>

#include "base/index.h"
#include "program/passes/passes.h"
#include "program/passes/rewrite.h"
#include "program/pipeline.h"

namespace weft {

namespace {

// The operand that has every dim of the other, and whose first or last dims are those of the output: -1 if there is none.
// All dims of the output are then in both, or there would be a matrix.
int full_operand(const Program& p, const Instr& instr) {
  const Shape& out = p.values[instr.outputs[0]].shape;
  for (int k : {0, 1}) {
    const Shape& full = p.values[instr.inputs[at(k)]].shape;
    const Shape& other = p.values[instr.inputs[at(1 - k)]].shape;
    if (full.rank() == out.rank() || !std::ranges::all_of(other, [&](const Dim& dim) { return full.has(dim); }))
      continue;
    if (!std::ranges::all_of(out, [&](const Dim& dim) { return other.has(dim); })) continue;
    const std::size_t behind = full.rank() - out.rank();
    bool first = true, last = true;
    for (std::size_t d = 0; d < out.rank(); ++d) {
      first &= full[d] == out[d];
      last &= full[behind + d] == out[d];
    }
    if (first || last) return k;
  }
  return -1;
}

// The product of the operands, which is pending where one of them is.
ValueType product_type(const Program& p, const Instr& instr, int full) {
  ValueType type = type_of(p, instr.inputs[at(full)]);
  const Sharding& other = p.values[instr.inputs[at(1 - full)]].sharding;
  if (other.is_partial()) make_pending(type.sharding, other.partial, other.pending);
  return type;
}

}  // namespace

Program contract_to_sum(Program p, const PassOptions& options) {
  if (!options.target.fusing.maps || !options.target.fusing.reductions) return p;
  std::vector<Instr> body;
  body.reserve(p.body.size());
  for (Instr& instr : p.body) {
    const bool exact = !instr.outputs.empty() && p.values[instr.outputs[0]].dtype == DType::kF32;
    const int full = instr.is<Contract>() && exact ? full_operand(p, instr) : -1;
    if (full < 0) {
      body.push_back(std::move(instr));
      continue;
    }
    const Value out = p.values[instr.outputs[0]];
    const ValueId product = add_value(p, out.name + "/product", product_type(p, instr, full));
    const std::vector<MapNode> multiply = one_function("multiply", {out.dtype, out.dtype}, out.dtype);
    body.push_back({Map{multiply}, instr.inputs, {product}, instr.origin});
    body.push_back({ReduceDims{Reduce::kSum}, {product}, instr.outputs, instr.origin});
  }
  p.body = std::move(body);
  return p;
}

}  // namespace weft
