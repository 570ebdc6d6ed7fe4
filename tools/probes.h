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

// Where probes run.
struct ProbePlace {
  Mesh mesh;
  wire::Choice wire;
  device::Choice device = device::cpu();
};

// The longest instruction of each scope of the graph, by the scope's name, on processor 0 while all processors of the
// mesh do the same. `kind`: of these instructions, "contract"; "": of any.
std::map<std::string, ProbeTime> time_probes(const Graph& graph, const CompileOptions& options, const ProbePlace& place,
                                             const std::string& kind, int runs);

// Of a program whose processors meet in an all_reduce of kMeetingBytes after about a millisecond of work, again and again:
// the seconds of a collective, in which processors wait for the slowest of them, and of the work before it.
constexpr std::int64_t kMeetingBytes = 65536;
struct MeetingTime {
  double collective = 0, work = 0;
};
MeetingTime meeting_time(const ProbePlace& place, int runs);

// Seconds of the collectives of a program that moves this many bytes with each kind, by kind. On devices that run
// collectives as instructions: the trace of one instruction is of all processors.
std::map<std::string, double> collective_seconds(const ProbePlace& place, std::int64_t bytes, int runs);

// Seconds of a step that does next to nothing: the median of many.
double empty_step_seconds(const ProbePlace& place);
// Seconds by which a step grows with an instruction that does next to nothing; `is_divided`: among the workers of a
// processor, as instructions with more work are.
double instruction_seconds(const ProbePlace& place, bool is_divided);

}  // namespace weft::tools
