// RowRegisters: what a sweep along rows keeps in registers between its passes over a row.
//
// Pass p computes what the reductions of level p + 1 need, the last pass all results. An operand that several passes read
// is loaded once. A narrow value that several passes need is computed in the first of them and kept, so that its own
// operands need not be.
#pragma once

#include <functional>
#include <map>
#include <set>

#include "program/fusible.h"

namespace weft::cuda {

struct RowRegisters {
  std::set<ValueId> operands;
  std::map<ValueId, int> values;  // and the pass that computes each
};

struct RowPasses {
  const Program& body;
  const RowPlan& plan;
  int count = 1;
  std::function<int(ValueId)> level;  // how many reductions along the row come one after another before a value is known
};

// `elements`: of a row that a thread has. `most_bytes`: that it may keep. `loads_packs`: whether an operand is loaded in packs.
RowRegisters choose_registers(const RowPasses& passes, std::int64_t elements, std::int64_t most_bytes,
                              const std::function<bool(ValueId)>& loads_packs);

}  // namespace weft::cuda
