// The properties of an engine that passes, memory plan and planner read, for programs that do not run it.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <string>

namespace weft {

struct Target;  // program/target.h

// Of the device of that name: see device::Choice. UserError if there is none, or if it cannot be used here. Lives as long as the program.
const Target& engine_target(const std::string& device, const std::string& plugin = {}, bool nondeterministic = false);

}  // namespace weft
