// Records the runs of an executable, for Executable::trace.
#pragma once

#include "api/state.h"

namespace weft {

// Gives every processor of this process a log for the runs that the options name.
void trace_runs(ExecutableState& state, const TraceOptions& options);

// After a run that began at that time: the call as a whole, if it is traced.
void note_call(ExecutableState& state, std::uint32_t run, std::int64_t begin);

}  // namespace weft
