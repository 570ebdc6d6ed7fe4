// doctor: what of this machine Weft can use, and whether a run fits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/explain.h"

namespace weft {

// What (wires, devices, cores, affinity mask, SIMD, memory, compiler) and what was found, in the order to be read.
std::vector<std::pair<std::string, std::string>> doctor();

// In bytes: what this machine has, or the container that the process is in; and what of it is to be had now. 0: unknown.
struct MachineMemory {
  std::int64_t total = 0, available = 0;
};
MachineMemory machine_memory();

// What `processors` processors of one process need for a step, and what the machine has, in one line; a second line
// warns if they need more than is to be had now. UserError if they need more than the machine has.
std::string memory_text(const Explanation& step, int processors, const MachineMemory& machine);

}  // namespace weft
