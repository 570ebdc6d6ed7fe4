// Work: one instruction of one processor on its way to the card. Kernels are source text with their launches. Launches
// and calls of libraries are kept in the order in which they go to the stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/cuda/card.h"
#include "runtime/cuda/kernel_set.h"
#include "runtime/host/kernel.h"

namespace weft::cuda {

// Puts work on a stream. Runs on the host at every step, or once where the step is captured.
using Issue = std::function<void(cudaStream_t)>;

// A parameter of a kernel with its argument: 8 bytes, a pointer or a number.
struct Param {
  std::string text;
  std::uint64_t argument = 0;
};
Param in(DType dtype, const std::string& name, const void* data);
Param out(DType dtype, const std::string& name, void* data);
Param typed(const std::string& type, const std::string& name, const void* data);
Param number(const std::string& name, std::int64_t value);

struct LaunchOptions {
  int cluster = 1;     // neighbouring blocks that see each other's shared memory
  bool waits = false;  // the body says wait_for_earlier() itself, after it has read what no kernel writes
};

class Work {
 public:
  const Program& program;
  const Instr& instr;
  std::vector<TensorView> inputs, outputs;  // on the card
  ProcessorId processor = {};
  std::function<void*(std::size_t bytes)> workspace;  // the next piece of what Target::workspace_bytes planned
  Card& card;
  KernelSet& kernels;
  std::vector<Issue>& issues;

  // Threads that no element needs end at once: the body begins with its own check.
  void launch(std::int64_t blocks, int threads, const std::vector<Param>& params, const std::string& body,
              const LaunchOptions& options = {}) const;
  void call(Issue issue) const { issues.push_back(std::move(issue)); }
  // The same work with other operands: for instructions that are made of several moves.
  Work with(std::vector<TensorView> in, std::vector<TensorView> out) const;
};

// Whether some byte lies between the first and the last elements of both.
bool share_memory(const TensorView& a, const TensorView& b);

// One thread per element: `body` finds the element's row-major number in `i`, a long long below `elements`.
void launch_per_element(const Work& work, std::int64_t elements, const std::vector<Param>& params,
                        const std::string& body);

}  // namespace weft::cuda
