#include "support/command.h"

#include <sys/wait.h>

#include <cstdio>

#include "base/str.h"

namespace weft::test {

std::size_t Ran::count(const std::string& part) const {
  std::size_t found = 0;
  for (std::size_t at = output.find(part); at != output.npos; at = output.find(part, at + 1)) ++found;
  return found;
}

Ran ran(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  Ran result;
  char text[4096];
  for (std::size_t got = 0; (got = fread(text, 1, sizeof text, pipe)) > 0;) result.output.append(text, got);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

Ran mpirun(int ranks, const std::string& program) {
  return ran(str("ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -k 5 300 ", WEFT_MPIRUN,
                 " --oversubscribe -n ", ranks, " ", program, " </dev/null"));
}

}  // namespace weft::test
