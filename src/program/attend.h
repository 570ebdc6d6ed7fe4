// The roles of the operands and results of attend and attend_back.
#pragma once

#include "program/ir.h"

namespace weft {

// The operands by role; -1 where there is none. Positions in Instr::inputs.
struct AttendOperands {
  int y = -1, total = -1, dy = -1;  // of attend_back
  int bias = -1, query_ids = -1, memory_ids = -1, memory_end = -1, sources = -1;
  int count = 0;
};

// null for other instructions.
const AttendRules* attend_rules(const Instr& instr);
AttendOperands attend_operands(const Instr& instr);

// The position of the derivative by the bias in Instr::outputs, -1 where there is none: it comes last in an attend_back
// that is asked for it.
int bias_derivative(const Instr& instr);

// Dims that q shares with k and v, and dims that it has for itself; `key` is in neither.
struct AttendDims {
  Shape shared, rows;
};
AttendDims attend_dims(const AttendRules& rules, const Shape& q, const Shape& k);

// The dims of the k-th (0: q) of the three derivatives as they lie in a joined output, which has them all.
Shape joined_part(const AttendBack& operation, const Shape& joined, int part);

}  // namespace weft
