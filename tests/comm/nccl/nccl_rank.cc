// One process of an nccl job on the stand-in for NCCL.
// nccl_rank <file of the job> <size> <rank> <kill|wait>: after a first collective it kills itself, or makes collectives
// until one fails; then it prints the error and ends with 3.
// nccl_rank: a rank of an MPI job, for one collective.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <vector>

#include "base/index.h"
#include "fake_wire.h"
#include "weft/error.h"

int main(int argc, char** argv) {
  using namespace weft;
  using namespace weft::comm;
  try {
    const bool is_alone = argc < 5;
    const std::string how = is_alone ? "end" : argv[4];
    const NcclJob job = is_alone ? nccl_job() : fake_job(std::atoi(argv[3]), std::atoi(argv[2]), argv[1]);
    NcclWire wire(job, fake_nccl(), fake_cuda());
    const std::unique_ptr<Group> group = wire.join(wire.me(), identity<ProcessorId>(at(wire.size())));
    std::vector<float> x(1000, 1.0f);
    const Buffer all{x.data(), x.size(), DType::kF32};
    all_reduce(*group, all, all, Reduce::kSum, "first step", std::chrono::seconds(30));
    if (how == "kill") std::raise(SIGKILL);
    if (how == "end") {
      const bool is_right = wire.size() > 1 && x[999] == static_cast<float>(wire.size());
      std::cout << (is_right ? "the sum is right\n" : "the sum is wrong\n");
      return is_right ? 0 : 1;
    }
    for (;;) all_reduce(*group, all, all, Reduce::kSum, "second step", std::chrono::seconds(30));
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
