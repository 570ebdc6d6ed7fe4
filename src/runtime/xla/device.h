// Devices of the XLA engine: processor p of the mesh is device p of a client.
#pragma once

#include "runtime/engine.h"
#include "runtime/xla/client.h"

namespace weft::xla {

// All devices of the plugin, or so many if it makes its devices. Real devices have one client in a process: all share it.
std::shared_ptr<const Client> shared_client(const Plugin& plugin, int devices);
// UserError if the plugin has not as many devices as the mesh has processors.
std::shared_ptr<const Client> client_for(const Plugin& plugin, const Mesh& mesh);

Devices open_devices(const Plugin& plugin, comm::Wire& wire, const Mesh& mesh);

// The statistics of the compiler as explain shows them.
CompilerMemory compiler_memory(const std::string& plugin, const CompiledMemory& memory, double seconds);

}  // namespace weft::xla
