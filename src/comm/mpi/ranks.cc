#include <algorithm>
#include <array>

#include "base/str.h"
#include "comm/launch.h"
#include "comm/mpi/wire.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

MPI_Comm first_ranks(int processors) {
  MPI_Comm all = MPI_COMM_NULL;
  int size = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (const std::optional<Launch> launch = launched(); launch && launch->size > 1 && size == 1)
    throw UserError({.code = "mpi.wrong-launcher",
                     .what = str(launch->by, " started ", launch->size, " processes, of which this is number ",
                                 launch->rank, ", but MPI finds it alone"),
                     .where = "making the mpi wire",
                     .fix = str("start them with the mpirun of ", mpi_version(), ", which this build uses")});
  if (processors > size)
    throw UserError(
        {.code = "mpi.rank-count-mismatch",
         .what = str("a wire of ", processors, " processors in a job of ", size, " rank", size == 1 ? "" : "s"),
         .where = "making the mpi wire",
         .fix = str("start one rank per processor: mpirun -n ", processors, " …")});
  if (processors == 0 || processors == size) {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
    return all;
  }
  MPI_Group world = MPI_GROUP_NULL, first = MPI_GROUP_NULL;
  int range[1][3] = {{0, processors - 1, 1}};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_range_incl(world, 1, range, &first);
  const int code = MPI_Comm_create_group(MPI_COMM_WORLD, first, 0, &all);
  MPI_Group_free(&first);
  MPI_Group_free(&world);
  check_mpi(code, "MPI_Comm_create_group");
  return all;
}

}  // namespace

Ranks::Ranks(int processors) {
  start_mpi();
  all = first_ranks(processors);
  MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN);
  MPI_Comm_size(all, &size);
  int rank = 0;
  MPI_Comm_rank(all, &rank);
  me = ProcessorId(rank);
  check_mpi(MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &here), "MPI_Comm_split_type");
  MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN);
  int count = 0;
  MPI_Comm_size(here, &count);
  local.resize(static_cast<std::size_t>(count));
  check_mpi(MPI_Allgather(&me, 1, MPI_INT, local.data(), 1, MPI_INT, here), "MPI_Allgather");

  host.resize(static_cast<std::size_t>(size));
  const ProcessorId mine = local.front();
  check_mpi(MPI_Allgather(&mine, 1, MPI_INT, host.data(), 1, MPI_INT, all), "MPI_Allgather");
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name name = {};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  std::vector<Name> every(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(name.data(), sizeof name, MPI_BYTE, every.data(), sizeof name, MPI_BYTE, all),
            "MPI_Allgather");
  for (const Name& each : every) names.emplace_back(each.data());
}

}  // namespace weft::comm
