// One rank of a job in which rank 1 fails in a chosen way, in a chosen collective:
// mpirun -n 3 weft_failing_rank <kill|throw|stop|leave|cut> <collective> [deadline in s, 10 if not given]
// Prints "report: …" lines as a program would, and ends with 3 after a RunError. `cut`: all go on until the wire fails.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "base/index.h"
#include "base/str.h"
#include "comm/spawn.h"
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {
namespace {

constexpr std::size_t kCount = 60'000;

void call(Group& group, const std::string& what, float* data, const std::string& label, Deadline deadline) {
  const std::size_t size = static_cast<std::size_t>(group.size()), block = kCount / size;
  const Buffer whole{data, block * size, DType::kF32};
  const Buffer part{data + static_cast<std::size_t>(group.rank()) * block, block, DType::kF32};
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  if (what == "all_reduce") return all_reduce(group, whole, whole, Reduce::kSum, label, deadline);
  if (what == "reduce_scatter") return reduce_scatter(group, whole, part, Reduce::kSum, label, deadline);
  if (what == "all_gather") return all_gather(group, part, whole, label, deadline);
  if (what == "all_to_all") return all_to_all(group, whole, whole, label, deadline);
  if (what == "permute") return permute(group, whole, whole, before, next, label, deadline);
  if (what == "barrier") return barrier(group, label, deadline);
  throw std::runtime_error("no collective " + what);
}

void fail(const std::string& how) {
  if (how == "kill") raise(SIGKILL);
  if (how == "stop") raise(SIGSTOP);
  if (how == "leave") _exit(0);
  if (how == "throw") throw std::runtime_error("the disk is full");
}

// Until all others are in the second step: what they say then is the same every time.
void await_peers(const Wire& wire) {
  for (int peers = 0; peers < wire.size() - 1; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    peers = 0;
    for (const ProcessorStatus& status : wire.report()) peers += status.label == "second step";
  }
}

void run(const std::string& how, const std::string& what, Deadline deadline) {
  const std::unique_ptr<Wire> wire = make_mpi_wire();
  on_every_processor(*wire, [&](ProcessorId processor) {
    const std::unique_ptr<Group> group = wire->join(processor, identity<ProcessorId>(at(wire->size())));
    const Memory arena = allocate(*wire, processor, kCount * sizeof(float));
    float* data = reinterpret_cast<float*>(arena.data());
    call(*group, what, data, "first step", deadline);
    if (processor == ProcessorId(0)) std::cout << "all ranks have made the first step" << std::endl;
    if (processor == ProcessorId(1) && how == "kill") await_peers(*wire);
    if (processor == ProcessorId(1)) fail(how);
    do call(*group, what, data, "second step", deadline);
    while (how == "cut");
  });
}

}  // namespace
}  // namespace weft::comm

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::chrono::seconds deadline(argc > 3 ? std::atoi(argv[3]) : 10);
  try {
    weft::comm::run(argv[1], argv[2], deadline);
  } catch (const std::exception& error) {
    if (weft::comm::reports_failure()) std::cerr << "report: " << error.what() << std::endl;
    return 3;
  }
  return 0;
}
