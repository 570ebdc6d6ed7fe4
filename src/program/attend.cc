#include "program/attend.h"

namespace weft {

const AttendRules* attend_rules(const Instr& instr) {
  if (const auto* forward = instr.as<Attend>()) return forward;
  return instr.as<AttendBack>();
}

AttendOperands attend_operands(const Instr& instr) {
  const AttendRules& rules = *attend_rules(instr);
  AttendOperands at;
  at.count = 3;
  const auto next = [&](int& role, bool there) {
    if (there) role = at.count++;
  };
  const bool back = instr.is<AttendBack>();
  next(at.y, back);
  next(at.total, back);
  next(at.dy, back);
  next(at.bias, rules.biased);
  next(at.query_ids, rules.segments);
  next(at.memory_ids, rules.segments);
  next(at.memory_end, rules.bounded);
  next(at.sources, !rules.sources.empty());
  return at;
}

int bias_derivative(const Instr& instr) {
  const auto* back = instr.as<AttendBack>();
  const std::size_t others = back && !back->joined.empty() ? 1 : 3;
  return back && back->biased && instr.outputs.size() > others ? static_cast<int>(others) : -1;
}

AttendDims attend_dims(const AttendRules& rules, const Shape& q, const Shape& k) {
  AttendDims dims;
  for (const Dim& dim : q) {
    if (dim.name == rules.key) continue;
    Shape& role = k.has(dim.name) ? dims.shared : dims.rows;
    role = role.plus({dim});
  }
  return dims;
}

Shape joined_part(const AttendBack& operation, const Shape& joined, int part) {
  Shape shape = joined.minus({joined.dim(operation.joined)});
  if (part > 0) shape = shape.renamed(operation.length, operation.memory);
  return part == 2 && operation.key != operation.value ? shape.renamed(operation.key, operation.value) : shape;
}

}  // namespace weft
