// The reference kernels: slow, readable, f64-capable; tests compare faster engines with them.
#pragma once

#include "runtime/host/kernel_table.h"
#include "runtime/host/strided.h"

namespace weft::reference {

KernelTable& kernels();

// The reference's kernel for an instruction of another engine, which reports it.
Kernel serve(const KernelArgs& args);

// See WorkspaceBytes: the operands of an instruction in double, and its result.
std::int64_t wide_bytes(const Program& program, const Instr& instr, const std::vector<std::vector<std::int64_t>>&);

}  // namespace weft::reference
