// The peaks of this machine, measured by an engine.
#include <algorithm>

#include "runtime/engine.h"
#include "weft/explain.h"

namespace weft {

Machine measure_machine(const device::Choice& device, int processors, int workers) {
  const Roofs roofs = engine_named(device.name, "measure_machine", device.plugin, device.nondeterministic)
                          .measure(std::max(1, processors), {.workers = workers});
  return Machine::uniform(roofs.flops_per_second, roofs.bytes_per_second);
}

}  // namespace weft
