// The groups of maps and reductions that can run as one sweep over rows, and their arrangement in the sweep.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "program/ir.h"

namespace weft {

// What part of the sweep's rows x columns a value spans.
enum class Extent : std::uint8_t { kScalar, kRow, kColumn, kFull };

// The dims of a full value are `rows`, then `cols`.
struct RowPlan {
  std::vector<Dim> rows, cols;
  ByValue<Extent> extents;  // of every value of the body
  ByValue<bool> late;       // of every value: it is known only when all rows are done
  bool whole_rows = false;  // some reduction joins `cols`: a row is held whole
};

// The plan of a body, or nothing if it cannot run in one sweep. It can if  1. it has only maps and reductions, and no
// variables;  2. one of its values, the full shape, has every dim of every other. Its order is that of the operand of
// the first
//     reduction of a full value; if there is none, of the first full output, or of the first full value if only so the
//     next rule holds. What outputs a body has thus never decides whether it can run;
//  3. there is one border in the full shape: rows before it, columns behind it (in any order within each), and every
//     result in the body has the dims of the full shape, of the rows, of the columns, or none. Operands of the body may
//     have any dims of the full shape;
//  4. a reduction joins the columns of a full value (giving one value per row), its rows (one per column) or both, or
// the
//     rows of a value per row (a scalar). No other;
//  5. what joins rows, and all that is computed from it, is late. A late value is per column or a scalar, and is not
//     reduced further.
// With no reduction and no result per row or per column the border is before the last dim, and means nothing.
std::optional<RowPlan> row_plan(const Program& body);

// Whether a body of these maps and reductions, which read `operands` and each other, would have a plan.
bool runs_in_one_sweep(const ByValue<Value>& values, std::span<const ValueId> operands,
                       std::span<const Instr* const> members);

}  // namespace weft
