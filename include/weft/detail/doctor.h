// doctor: what Weft can use on this machine, and whether a run fits into its memory.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/explain.h"

namespace weft {

// Pairs of a topic (wires, devices, cores, affinity mask, SIMD, memory, compiler) and its result, in reading order.
// `plugin`: of device xla, besides the plugins that are found.
std::vector<std::pair<std::string, std::string>> doctor(const std::string& plugin = {});

// In bytes: the memory of this machine, or of the container of this process, and the part that is available now. 0:
// unknown.
struct MachineMemory {
  std::int64_t total = 0, available = 0;
};
MachineMemory machine_memory();

// One line with the memory that `processors` processors of one process need for a step and the memory of the machine; a
// second line warns if they need more than is available now. UserError if they need more than the machine has.
std::string memory_text(const Explanation& step, int processors, const MachineMemory& machine);

}  // namespace weft
