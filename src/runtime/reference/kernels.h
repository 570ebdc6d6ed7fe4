// The reference kernels: slow, readable, f64-capable; tests compare faster engines with them.
#pragma once

#include <functional>
#include <memory>

#include "runtime/host/kernel.h"
#include "runtime/host/strided.h"

namespace weft::reference {

// A kernel of the reference for another engine, which says so.
template <class Make>
Kernel serve(const KernelArgs& args, const Make& make) {
  if (args.served_by) *args.served_by = "reference";
  return make(args);
}

Kernel map(const KernelArgs& args);
Kernel contract(const KernelArgs& args);
Kernel reduce(const KernelArgs& args);
Kernel copy(const KernelArgs& args);
Kernel concat(const KernelArgs& args);
Kernel take(const KernelArgs& args);
Kernel put(const KernelArgs& args);
Kernel gather(const KernelArgs& args);
Kernel scatter_add(const KernelArgs& args);
Kernel scan(const KernelArgs& args);
Kernel sort(const KernelArgs& args);
Kernel convolve(const KernelArgs& args);
Kernel pool(const KernelArgs& args);
Kernel attend(const KernelArgs& args);
Kernel attend_back(const KernelArgs& args);
Kernel random(const KernelArgs& args);

// See WorkspaceBytes: what contract and scatter_add keep wide. 0 for other instructions.
std::int64_t wide_bytes(const Program& program, const Instr& instr);

}  // namespace weft::reference
