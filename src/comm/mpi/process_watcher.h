// The watcher of a rank: a thread that sees when another rank of this host dies, or when the launcher ends the run, and
// aborts the wires, so that the waits of all ranks end with a report instead of never, or of silence.
//
// mpirun ends the survivors of a death by SIGTERM and, a second later, by SIGKILL. So SIGTERM first gives the waits a
// moment to report. A handler that the program has installed before stays. Makes no MPI calls.
#pragma once

#include <vector>

#include <sys/types.h>

#include "comm/shared/shared_block.h"

namespace weft::comm {

struct Peer {
  int processor = 0;
  pid_t process = 0;
};

// Until unwatch. The block stays where it is.
void watch(SharedBlock& block, const std::vector<Peer>& peers);
void unwatch(SharedBlock& block);

}  // namespace weft::comm
