// The names of processors in texts of failures, with their coordinates on the mesh.
#pragma once

#include <string>

#include "comm/failure.h"
#include "layout/sharding.h"

namespace weft {

// "processor 3 (data=1 model=1)"; without coordinates if the mesh has no axes.
std::string processor_text(const Mesh& mesh, ProcessorId processor);

comm::ProcessorNames processor_names(const Mesh& mesh);

}  // namespace weft
