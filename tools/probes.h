// Probes of weft calibrate: small programs whose instructions are timed one by one, as the engine runs them.
#pragma once

#include <map>
#include <string>

#include "weft/session.h"

namespace weft::tools {

struct ProbeTime {
  double seconds = 0;  // the median of all runs
  double flops = 0, bytes = 0;
};

// The longest instruction of each scope of the graph, by the scope's name, on processor 0 while all processors of the
// mesh do the same. `kind`: of these instructions, "contract"; "": of any.
std::map<std::string, ProbeTime> time_probes(const Graph& graph, const CompileOptions& options, const Mesh& mesh,
                                             const wire::Choice& wire, const std::string& kind, int runs);

// Seconds of an all_reduce of kMeetingBytes after about a millisecond of work: processors wait for the slowest of them.
constexpr std::int64_t kMeetingBytes = 65536;
double meeting_seconds(const Mesh& mesh, const wire::Choice& wire, int runs);

// Seconds of a step that does next to nothing: the median of many.
double empty_step_seconds(const Mesh& mesh, const wire::Choice& wire);

}  // namespace weft::tools
