// The verifier: what every program must obey, between any two passes.
#pragma once

#include <string_view>

#include "program/ir.h"

namespace weft {

// InternalError naming the pass, the line and the rule that is broken. Takes any program, parsed text included.
void verify(const Program& program, std::string_view after);

}  // namespace weft
