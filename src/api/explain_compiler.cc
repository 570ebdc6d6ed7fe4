// The account of a compiler that made the whole program, for people.
#include <algorithm>

#include "api/explain_parts.h"
#include "base/str.h"

namespace weft {

std::int64_t arena_bytes(const CompilerMemory& memory, std::int64_t variable_bytes) {
  return std::max<std::int64_t>(0, memory.arguments - variable_bytes) + memory.outputs - memory.aliased +
         memory.temporaries + memory.code;
}

std::vector<std::vector<std::string>> compiler_rows(const Explanation& e) {
  if (!e.compiler) return {};
  const Explanation::Compiler& c = *e.compiler;
  const bool ahead = !c.topology.empty();
  std::vector<std::vector<std::string>> rows;
  const std::string place = ahead ? str("ahead of time for ", c.topology) : "in place of Weft's memory plan";
  if (!c.refusal.empty()) {
    rows.push_back({"memory by XLA", str("does not fit, says ", c.name, " ", place, ": ", c.refusal)});
  } else {
    rows.push_back({"memory by XLA", str("as ", c.name, " reports it, ", place)});
    rows.push_back({"  arguments", str(bytes_text(c.arguments), " (variables and inputs, with their padding)")});
    rows.push_back(
        {"  outputs", str(bytes_text(c.outputs), " (", bytes_text(c.aliased), " of it overwrites arguments)")});
    rows.push_back({"  temporaries", bytes_text(c.temporaries)});
    rows.push_back({"  code", bytes_text(c.code)});
    if (c.peak > 0) rows.push_back({"  peak", bytes_text(c.peak)});
    if (ahead) rows.push_back({"  verdict", "fits into the memory of the devices"});
  }
  if (c.seconds > 0)
    rows.push_back({"  compiled in", str(seconds_text(c.seconds),
                                         c.cpu_seconds > 0 ? str(", ", seconds_text(c.cpu_seconds), " of CPU") : "")});
  if (ahead && c.refusal.empty() && !c.executable.empty()) rows.push_back({"  kept in", c.executable});
  return rows;
}

}  // namespace weft
