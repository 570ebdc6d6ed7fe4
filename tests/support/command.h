// Running a command through the shell.
#pragma once

#include <string>

namespace weft::test {

struct Ran {
  int code = -1;
  std::string output;  // standard output, and standard error if the command sends it there

  std::size_t count(const std::string& part) const;  // how often it is in the output
};

Ran ran(const std::string& command);

// The same with this many ranks. The time limit catches hangs.
Ran mpirun(int ranks, const std::string& program);

}  // namespace weft::test
