#include "runtime/processor_names.h"

#include "base/str.h"

namespace weft {

namespace {

std::string name(const Mesh& mesh, int processor) {
  const bool has_coordinates = !mesh.axes().empty() && processor >= 0 && processor < mesh.size();
  return has_coordinates ? str(processor, " (", coordinates_text(mesh, processor), ")") : str(processor);
}

}  // namespace

std::string processor_text(const Mesh& mesh, int processor) { return str("processor ", name(mesh, processor)); }

comm::ProcessorNames processor_names(const Mesh& mesh) {
  return {.name = [mesh](int processor) { return name(mesh, processor); },
          .mesh = mesh.axes().empty() ? "" : str(" of mesh ", mesh)};
}

}  // namespace weft
