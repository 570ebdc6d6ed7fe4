// One row of a pool: neighbouring results whose windows meet the same places.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "program/windows.h"

namespace weft::cpu {

// Where in each operand, in elements.
using Meeting = std::array<std::int64_t, 3>;

// out[i] joins operand[m + i] over the meetings m. winners: operand 0 is x, 1 is y, 2 is v, or null for ones.
struct PoolRow {
  PoolKind kind = PoolKind::kMax;
  std::array<const float*, 3> operands = {};
  const Meeting* meetings = nullptr;
  std::size_t count = 0;
  float* out = nullptr;
  std::size_t length = 0;
};

// Sums are kept in f32, in blocks of meetings whose sums are added.
void pool_row(const PoolRow& row);

}  // namespace weft::cpu
