// The verifier: the rules that every program must obey between any two passes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "program/ir.h"

namespace weft {

struct Violation {
  std::string rule;
  std::string line;  // of the program's text, or what it speaks of
};
// The first rule that the program breaks. Takes any program, parsed text included; what it passes can be bound and run.
std::optional<Violation> find_breach(const Program& program);

// InternalError naming the pass, the line and the rule that is broken.
void verify(const Program& program, std::string_view after);

// parse_program for text from outside: also what it leaves to the verifier is a UserError.
Program parse_verified(std::string_view text);

}  // namespace weft
