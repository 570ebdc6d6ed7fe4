#include "runtime/processor_names.h"

#include "base/str.h"

namespace weft {

namespace {

std::string name(const Mesh& mesh, ProcessorId processor) {
  const bool has_coordinates = !mesh.axes().empty() && processor && processor < ProcessorId(mesh.size());
  return has_coordinates ? str(processor, " (", coordinates_text(mesh, processor), ")") : str(processor);
}

}  // namespace

std::string processor_text(const Mesh& mesh, ProcessorId processor) { return str("processor ", name(mesh, processor)); }

comm::ProcessorNames processor_names(const Mesh& mesh) {
  return {.name = [mesh](ProcessorId processor) { return name(mesh, processor); },
          .mesh = mesh.axes().empty() ? "" : str(" of mesh ", mesh)};
}

}  // namespace weft
