// The job of a process: its rank, how many ranks there are, and how it finds rank 0.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "comm/nccl/hub.h"
#include "comm/nccl/socket.h"

namespace weft::comm {

struct NcclJob {
  int rank = 0, size = 1;
  std::string address = {};  // "host:port" where rank 0 listens
  std::string file = {};     // that rank 0 writes, if no address is given
  bool by_mpi = false;       // neither is given: the ranks of an MPI job tell each other
  std::string host_id = {};  // NCCL_HOSTID: ranks of unlike ids may share a card
  std::chrono::nanoseconds patience = std::chrono::seconds(300);
};

// The job that the environment describes: WEFT_NCCL_RANK and WEFT_NCCL_SIZE, or the variables of mpirun or srun; and
// WEFT_NCCL_ADDRESS, WEFT_NCCL_FILE, WEFT_NCCL_TIMEOUT. UserError if they make no sense.
NcclJob nccl_job();

// How the ranks reach each other: the hub on rank 0, and a connection to it on every rank.
struct Meeting {
  std::unique_ptr<Hub> hub;
  FrameStream to_hub;
};

// UserError or RunError if rank 0 is not found in time.
Meeting meet(const NcclJob& job);

}  // namespace weft::comm
