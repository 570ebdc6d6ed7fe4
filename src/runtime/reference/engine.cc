#include "base/index.h"
#include "runtime/host/host_engine.h"
#include "runtime/reference/kernels.h"

namespace weft {

KernelTable& reference::kernels() {
  static KernelTable table;
  return table;
}

Kernel reference::serve(const KernelArgs& args) {
  if (args.served_by) *args.served_by = "reference";
  return kernels().make(args);
}

std::int64_t reference::wide_bytes(const Program& program, const Instr& instr,
                                   const std::vector<std::vector<std::int64_t>>&) {
  const auto wide = [&](ValueId id) {
    return host_aligned(program.values[id].shape.elements() * std::int64_t{sizeof(double)});
  };
  if (instr.is<ScatterAdd>()) return wide(instr.outputs[0]);
  return wide(instr.inputs[0]) + wide(instr.inputs[1]) + wide(instr.outputs[0]);
}

const HostEngine& reference_engine() {
  static const HostEngine engine("reference", joined(reference::kernels(), common_kernels()),
                                 {.alignment = kHostAlignment}, false);
  return engine;
}

}  // namespace weft
