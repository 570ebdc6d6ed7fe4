// Whether this process is one of many that a launcher started, read from the environment, before MPI is started.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::comm {

// Launch::by of processes that WEFT_NCCL_RANK and WEFT_NCCL_SIZE make ranks of the nccl wire.
constexpr const char* kByHand = "WEFT_NCCL_SIZE";

struct Launch {
  std::string by;                  // "mpirun", "srun", "PMI" for another launcher, or kByHand
  int rank = 0, size = 1;          // of all processes
  int local_rank = 0;              // among those of this host; 0 if unknown
  std::vector<std::string> hosts;  // if the launcher says
};

// Nothing if the process was started by hand. A batch script's own shell is not a rank. UserError if the variables
// make no sense.
std::optional<Launch> launched();

// The names that Slurm's short form stands for: "n[01-03,7],login" is n01 n02 n03 n7 login.
std::vector<std::string> expand_hosts(std::string_view text);

}  // namespace weft::comm
