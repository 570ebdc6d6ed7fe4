// Programs from short texts, for the tests of program/.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "program/text.h"
#include "program/verify.h"

namespace weft::test {

// The program of these lines on the mesh data:2 model:4 one:1.
inline Program raw_program_of(const std::string& lines) {
  return parse_program("weft program 1\nmesh data:2 model:4 one:1\n" + lines + "\nend\n");
}

// The same, verified.
inline Program program_of(const std::string& lines) {
  Program program = raw_program_of(lines);
  verify(program, "the test's text");
  return program;
}

// The text with values numbered in the order of their definition, without their names and without origins.
inline Program bare(Program program) {
  ByValue<ValueId> number(program.values.size());
  ByValue<Value> values;
  const auto define = [&](ValueId& id) {
    id = number[id] = values.add(program.values[id]);
    values[id].name.clear();
  };
  const auto use = [&](ValueId& id) { id = number[id]; };
  for (ProgramInput& input : program.inputs) define(input.value);
  for (ProgramVariable& variable : program.variables) define(variable.value);
  for (Instr& instr : program.body) {
    for (ValueId& id : instr.inputs) use(id);
    for (ValueId& id : instr.outputs) define(id);
    instr.origin = {};
    if (Program* body = body_of(instr)) *body = bare(std::move(*body));
  }
  for (ProgramVariable& variable : program.variables)
    if (variable.update) use(*variable.update);
  for (ProgramOutput& output : program.outputs) use(output.value);
  program.values = std::move(values);
  return program;
}

inline std::string bare_text(Program program) { return to_text(bare(std::move(program))); }

// `got` is the program of these lines up to numbers, names and origins, and is verified.
inline testing::AssertionResult is_program(const Program& got, const std::string& lines) {
  try {
    verify(got, "the pass under test");
  } catch (const std::exception& error) {
    return testing::AssertionFailure() << error.what() << "\n" << to_text(got);
  }
  const std::string have = bare_text(got), want = bare_text(program_of(lines));
  if (have == want) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "got:\n" << have << "expected:\n" << want;
}

}  // namespace weft::test
