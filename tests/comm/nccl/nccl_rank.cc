// One process of an nccl job on the stand-in for NCCL: nccl_rank <file of the job> <size> <rank> <kill|wait>
// After a first collective it kills itself, or makes collectives until one fails; then it prints the error and ends with 3.
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
  if (argc < 5) return 2;
  const std::string how = argv[4];
  const NcclJob job = fake_job(std::atoi(argv[3]), std::atoi(argv[2]), argv[1]);
  try {
    NcclWire wire(job, fake_nccl(), fake_cuda());
    const std::unique_ptr<Group> group = wire.join(wire.me(), identity<ProcessorId>(at(wire.size())));
    std::vector<float> x(1000, 1.0f);
    const Buffer all{x.data(), x.size(), DType::kF32};
    all_reduce(*group, all, all, Reduce::kSum, "first step", std::chrono::seconds(30));
    if (how == "kill") std::raise(SIGKILL);
    for (;;) all_reduce(*group, all, all, Reduce::kSum, "second step", std::chrono::seconds(30));
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 3;
  }
}
