// Replaces src/comm/mpi in a build without MPI.
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

[[noreturn]] void refuse() {
  throw UserError({.code = "mpi.not-built",
                   .what = "this build has no MPI",
                   .where = "making the mpi wire",
                   .fix = "install libopenmpi-dev and openmpi-bin (scripts/setup does), and build again"});
}

}  // namespace

std::unique_ptr<Wire> make_mpi_wire(int) { refuse(); }

std::string share_by_mpi(const std::string&) { refuse(); }

std::string mpi_version() { return ""; }

}  // namespace weft::comm
