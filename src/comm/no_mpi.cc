// Replaces src/comm/mpi in a build without MPI.
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

std::unique_ptr<Wire> make_mpi_wire(int) {
  throw UserError({.code = "mpi.not-built",
                   .what = "this build has no MPI",
                   .where = "making the mpi wire",
                   .fix = "install libopenmpi-dev and openmpi-bin (scripts/setup does), and build again"});
}

std::string mpi_version() { return ""; }

}  // namespace weft::comm
