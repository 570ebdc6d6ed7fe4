// The instructions that the CUDA engine has.
#pragma once

#include <string>

#include "runtime/cuda/work.h"

namespace weft::cuda {

using Instruction = void (*)(const Work& work);

// Null if there is none of that name; collectives, loops and `host` are not among them.
Instruction find_instruction(const std::string& name);
Instruction instruction_named(const std::string& name);
bool has_instruction(const Instr& instr);

}  // namespace weft::cuda
