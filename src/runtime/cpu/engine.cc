#include "runtime/cpu/kernels.h"
#include "runtime/cpu/panel_contract.h"
#include "runtime/cpu/product.h"
#include "runtime/host/host_engine.h"

namespace weft {

KernelTable& cpu::kernels() {
  static KernelTable table;
  return table;
}

const HostEngine& cpu_engine() {
  static const HostEngine engine(
      "cpu", joined(cpu::kernels(), common_kernels()),
      {.fusing = {.maps = true, .reductions = true}, .alignment = kHostAlignment, .panel_lanes = cpu::panel_lanes()},
      true, cpu::prepare_thread);
  return engine;
}

}  // namespace weft
