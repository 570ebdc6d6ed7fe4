// The rules of single instructions; part of the verifier.
#pragma once

#include <string>

#include "base/str.h"
#include "program/builder.h"

namespace weft {

// One instruction under check. Its operands and outputs are known values whose axes are in the mesh.
struct Checked {
  const Program& program;
  const Instr& instr;

  const Value& in(std::size_t i) const { return program.values[instr.inputs[i]]; }
  const Value& out(std::size_t i = 0) const { return program.values[instr.outputs[i]]; }
  // The rule is given in parts: its text is made only where it is broken.
  template <class... Parts>
  void demand(bool holds, const Parts&... rule) const {
    if (!holds) fail(str(rule...));
  }
  // Throws BrokenRule, which verify turns into the InternalError.
  [[noreturn]] void fail(const std::string& rule) const;
};

struct BrokenRule {
  std::string rule;
};

// Numbers of operands and outputs, shapes, dtypes and attributes.
void check_instruction(const Checked& checked);
// Of attend and attend_back.
void check_attend(const Checked& checked);

}  // namespace weft
