// The watcher of a rank: a thread that notices when another rank of this host dies or when the launcher ends the run.
// It aborts the wires, so that the waits of all ranks end with a report.
//
// After the death of a rank mpirun sends SIGTERM to the remaining ranks and SIGKILL a second later. The watcher catches
// SIGTERM and gives the waits time to report. A signal handler that the program installed earlier stays. Makes no MPI
// calls.
#pragma once

#include <vector>

#include <sys/types.h>

#include "comm/shared/shared_block.h"

namespace weft::comm {

struct Peer {
  ProcessorId processor = {};
  pid_t process = 0;
};

// Watches the peers until unwatch. The block must not move meanwhile.
void watch(SharedBlock& block, const std::vector<Peer>& peers);
void unwatch(SharedBlock& block);

}  // namespace weft::comm
