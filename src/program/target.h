// Target: the properties of an engine that the passes and the memory plan use, as data.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "program/ir.h"

namespace weft {

// Bytes that an engine's kernel needs besides the operands and results of an instruction, from its start to its end (of
// a collective: to its done). `strides`: of the program's values. Empty: none.
using WorkspaceBytes = std::function<std::int64_t(const Program& program, const Instr& instr,
                                                  const ByValue<std::vector<std::int64_t>>& strides)>;

// What the engine takes as one `fused` instruction: maps and reductions that run in one sweep (program/fusible.h).
struct FusingRules {
  bool maps = false;        // it runs `fused` at all
  bool reductions = false;  // reductions may be members too
  std::size_t most_members = 64;
  std::size_t most_inputs = std::numeric_limits<std::size_t>::max();
};

struct Target {
  FusingRules fusing = {};
  std::int64_t alignment = 64;          // in bytes, of every piece of the arena
  WorkspaceBytes workspace_bytes = {};  // of its kernels: a part of the arena
  // A product of narrow floats gives f32 in place of a cast behind it, even where the result is larger than both operands
  // and writing it takes longer than the cast.
  bool widens_large_products = true;
  // Values of maps with at least so many bytes are made again behind other work in place of being kept: where arithmetic is
  // free beside memory traffic. 0: none.
  std::int64_t recomputed_bytes = 0;
  std::int64_t panel_lanes = 0;         // columns of a panel, if it has products with matrices in panels; 0: it has none
};

}  // namespace weft
