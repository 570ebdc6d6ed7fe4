#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

std::unique_ptr<Wire> make_mpi_wire() {
  throw UserError({.what = "this build has no MPI",
                   .where = "wire::mpi()",
                   .fix = "install libopenmpi-dev and build again, or use wire::threads()"});
}

}  // namespace weft::comm
