// What a backend offers: for each kind of instruction a maker that binds a kernel to storage, before the first step.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "comm/group.h"
#include "program/ir.h"
#include "program/memory_plan.h"
#include "runtime/workers.h"
#include "weft/array.h"

namespace weft {

// A value where it lies on one processor.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::int64_t> strides;  // in elements, per dim of shape
  std::vector<std::int64_t> begin;    // the first global index of the shard, per dim
  std::vector<std::int64_t> whole;    // the global sizes
};

// A value that print() or a metric hands over, whole.
struct HostEvent {
  std::string what;
  std::string text;
  Array value;
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
  int processor = 0;
  std::string label;  // for the wire's reports; lives as long as the kernel
  std::function<comm::Group&(const Axes&)> group;
  Workers* workers = nullptr;
  // The next piece of the memory that the instruction has for its run (a collective until its done), reachable by peers:
  // as much in all as Engine::workspace_bytes says. Its contents do not outlive the run.
  std::function<void*(std::size_t bytes)> workspace;
};

// A collective in two halves: what starts it, and what waits for it and leaves the outputs in place.
struct BoundCollective {
  Kernel start, done;
};

// Makers by instruction name. Views, loops and dones need none.
struct Engine {
  std::string name;
  std::map<std::string, std::function<Kernel(const KernelArgs&)>> makers;
  std::map<std::string, std::function<BoundCollective(const KernelArgs&)>> collectives;
  WorkspaceBytes workspace_bytes;
};

const Engine& reference_engine();  // slow and readable
const Engine& cpu_engine();        // fast

}  // namespace weft
