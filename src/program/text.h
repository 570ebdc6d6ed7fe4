// The text form of a program: version line, mesh, layout, inputs, variables, one instruction per line, outputs, `end`.
//
//   %3.h f32 [batch=32 hidden=256] {batch:data hidden:model} = contract %0.image, %1.w1  @forward "digits.cc:12 einsum"
//
// to_text accepts any program, also an invalid one. parse_program(to_text(p)) has the same text as p; the nodes of a
// map come back in post-order, equal leaves once.
#pragma once

#include <string>
#include <string_view>

#include "program/ir.h"

namespace weft {

std::string to_text(const Program& program);
// One line of it, without the end of line.
std::string to_text(const Program& program, const Instr& instr);
// The instruction's name and attributes alone: equal for two instructions iff they do the same to their operands.
std::string work_text(const Program& program, const Instr& instr);

// UserError, with the line, for any text that is no program. Checks words, names and types of values; what instructions
// demand of their operands is the verifier's to check. Memory taken is proportional to the text.
Program parse_program(std::string_view text);

}  // namespace weft
