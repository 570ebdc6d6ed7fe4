// The kernels of a host engine by instruction. A file adds the kernels that it defines when the program starts:
//   const AddKernel kSort(kernels(), Sort::kName, sort);
// No other file names them.
#pragma once

#include <map>
#include <string>

#include "runtime/host/kernel.h"

namespace weft {

using MakeKernel = std::function<Kernel(const KernelArgs&)>;
using MakeCollective = std::function<BoundCollective(const KernelArgs&)>;

// Makers by instruction name. Views, loops and dones need none.
struct KernelTable {
  std::map<std::string, MakeKernel> kernels;
  std::map<std::string, MakeCollective> collectives;
  std::map<std::string, WorkspaceBytes> workspaces;  // of the instructions that have one

  Kernel make(const KernelArgs& args) const { return kernels.at(name_of(args.instr))(args); }
};

struct AddKernel {
  AddKernel(KernelTable& table, const char* instruction, MakeKernel make, WorkspaceBytes workspace = {});
};

struct AddCollective {
  AddCollective(KernelTable& table, const char* instruction, MakeCollective make, WorkspaceBytes workspace = {});
};

// The kernels that all host engines have in common.
KernelTable& common_kernels();

// Both tables; InternalError if an instruction is in both.
KernelTable joined(const KernelTable& a, const KernelTable& b);

}  // namespace weft
