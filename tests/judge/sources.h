// What a variable starts from.
#pragma once

#include "judge/judge.h"

namespace weft::judge {

Value initial(const Node& variable, const Arithmetic& arithmetic, std::uint64_t seed);

}  // namespace weft::judge
