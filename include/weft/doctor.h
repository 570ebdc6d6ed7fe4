// doctor: what of this machine Weft can use.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {

// What (wires, runtimes, cores, affinity mask, SIMD, memory, compiler) and what was found, in the order to be read.
std::vector<std::pair<std::string, std::string>> doctor();

}  // namespace weft
