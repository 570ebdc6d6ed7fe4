// The choice of a wire, and the report of an error in a job of several processes.
#include <iostream>
#include <thread>

#include "runtime/processors.h"
#include "base/str.h"
#include "comm/launch.h"
#include "comm/wire.h"
#include "weft/error.h"
#include "weft/session.h"

namespace weft {

namespace {

// Where the environment makes no sense the process speaks for itself; who starts a wire is told.
comm::Launch launch() {
  try {
    return comm::launched().value_or(comm::Launch{});
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace

int wire::process() { return launch().rank; }

wire::Choice wire::automatic() {
  const comm::Launch here = launch();
  if (here.by == comm::kByHand) return nccl();
  return here.size > 1 ? mpi() : threads();
}

wire::Choice wire::named(const std::string& name) {
  const comm::Launch here = launch();
  if (name.empty()) return automatic();
  if (name == threads().name && here.size > 1)
    throw UserError(
        {.code = "wire.threads-under-launcher",
         .what = str(here.by, " started ", here.size, " processes, of which this is number ", here.rank,
                     ", but the wire is threads: each process would do all of the work"),
         .where = "--wire threads, or mesh.wire of the config",
         .fix = str("leave the wire out: it is mpi under mpirun or srun; or start one process without ", here.by)});
  return {name};
}

void wire::report(const std::exception& error) {
  // What is wrong with the user's program each process finds out by itself.
  const bool is_of_wire = has_wire_failed() && dynamic_cast<const UserError*>(&error) == nullptr;
  const bool is_primary = is_of_wire ? comm::reports_failure() : process() == 0;
  if (!is_primary && is_of_wire) return;
  // mpirun kills all processes soon after one has failed: a process that still runs after this time found the error alone.
  if (!is_primary) std::this_thread::sleep_for(comm::kTimeToReport);
  std::cout.flush();
  std::cerr << error.what() << "\n" << std::flush;
}

}  // namespace weft
