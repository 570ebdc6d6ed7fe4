#include "runtime/host/kernel_table.h"

#include "base/str.h"
#include "weft/error.h"

namespace weft {

namespace {

template <class T>
void add(std::map<std::string, T>& table, const std::string& instruction, const T& entry) {
  if (!table.emplace(instruction, entry).second)
    throw InternalError(str("two kernels of one engine for the instruction '", instruction, "'"));
}

}  // namespace

AddKernel::AddKernel(KernelTable& table, const char* instruction, MakeKernel make, WorkspaceBytes workspace) {
  add(table.kernels, instruction, make);
  if (workspace) add(table.workspaces, instruction, workspace);
}

AddCollective::AddCollective(KernelTable& table, const char* instruction, MakeCollective make,
                             WorkspaceBytes workspace) {
  add(table.collectives, instruction, make);
  if (workspace) add(table.workspaces, instruction, workspace);
}

KernelTable& common_kernels() {
  static KernelTable table;
  return table;
}

KernelTable joined(const KernelTable& a, const KernelTable& b) {
  KernelTable both = a;
  for (const auto& [name, make] : b.kernels) add(both.kernels, name, make);
  for (const auto& [name, make] : b.collectives) add(both.collectives, name, make);
  for (const auto& [name, bytes] : b.workspaces) add(both.workspaces, name, bytes);
  return both;
}

}  // namespace weft
