// A kernel of a host engine: an instruction bound to memory of this process, before the first step.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/group.h"
#include "program/ir.h"
#include "program/memory_plan.h"
#include "runtime/host/workers.h"

namespace weft {

constexpr std::int64_t kHostAlignment = 64;  // a cache line, and a vector register of any host

// A workspace is given out in pieces that are aligned like all storage.
inline std::int64_t host_aligned(std::int64_t bytes) { return aligned_bytes(bytes, kHostAlignment); }

struct HostEvent;

// A value where it lies on one processor.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::int64_t> strides;  // in elements, per dim of shape
  std::vector<std::int64_t> begin;    // the first global index of the shard, per dim
  std::vector<std::int64_t> whole;    // the global sizes
};

// What is new at each step.
struct StepState {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  comm::Deadline deadline;
  const std::function<void(const HostEvent&)>* host = nullptr;  // null on processors that hand over nothing
};

using Kernel = std::function<void(const StepState&)>;

struct KernelArgs {
  const Program& program;
  const Instr& instr;
  std::vector<TensorView> inputs, outputs;
  ProcessorId processor = {};
  std::string label;  // for the wire's reports; lives as long as the kernel
  std::function<comm::Group&(const Axes&)> group;
  Workers* workers = nullptr;
  // The next piece of the memory that the instruction has for its run (a collective until its done), reachable by peers:
  // as much in all as Target::workspace_bytes says. Its contents do not outlive the run.
  std::function<void*(std::size_t bytes)> workspace;
  // Takes the name of the engine whose kernel serves the instruction, where that is not the engine itself.
  std::string* served_by = nullptr;
};

// A collective in two halves: what starts it, and what waits for it and leaves the outputs in place.
struct BoundCollective {
  Kernel start, done;
};

}  // namespace weft
