// Target: the properties of an engine that the passes and the memory plan use, as data.
#pragma once

#include "program/memory_plan.h"

namespace weft {

struct Target {
  bool fuses = false;                   // it runs `fused`: several maps and reductions in one sweep (program/fusible.h)
  WorkspaceBytes workspace_bytes = {};  // of its kernels: a part of the arena
};

}  // namespace weft
