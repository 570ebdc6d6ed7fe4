#include "runtime/host/host_engine.h"

#include <algorithm>

#include "runtime/host/host_device.h"

namespace weft {

bool HostEngine::has(const Instr& instr) const {
  const char* name = name_of(instr);
  return is_collective(instr) ? table_.collectives.contains(name) : table_.kernels.contains(name);
}

// A processor has the cores of the process over its processors as workers, unless the options say how many.
Devices HostEngine::open(comm::Wire& wire, const Mesh& mesh, const DeviceOptions& options) const {
  Devices devices(static_cast<std::size_t>(wire.size()));
  const std::vector<int> local = wire.local();
  const int here = static_cast<int>(local.size()), cores = usable_cores(std::max(1, wire.on_host() / here));
  const int each = !shares_work_ ? 1 : options.workers > 0 ? options.workers : std::max(1, cores / here);
  for (const int p : local)
    devices[static_cast<std::size_t>(p)] =
        std::make_unique<HostDevice>(*this, wire, mesh, p, each, each * here <= cores);
  return devices;
}

}  // namespace weft
