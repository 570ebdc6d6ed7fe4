#include "comm/mpi/calls.h"

#include <cstdlib>
#include <mutex>

#include "base/str.h"
#include "comm/wire.h"
#include "weft/error.h"

namespace weft::comm {

namespace {

void end_mpi(int exit_code, void*) {
  int ended = 0;
  MPI_Finalized(&ended);
  if (exit_code == 0 && ended == 0) MPI_Finalize();
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw RunError({.code = "mpi.call-failed",
                  .what = str(call, " failed: ", text),
                  .where = "the mpi wire",
                  .fix = "see that all ranks are alive and that their hosts reach each other"});
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return text;
}

std::string share_by_mpi(const std::string& text) {
  start_mpi();
  std::string shared = text;
  auto length = static_cast<unsigned long long>(text.size());
  check_mpi(MPI_Bcast(&length, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD), "MPI_Bcast");
  shared.resize(length);
  check_mpi(MPI_Bcast(shared.data(), static_cast<int>(length), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  return shared;
}

void start_mpi() {
  static std::once_flag once;
  std::call_once(once, [] {
    int started = 0, level = 0;
    MPI_Initialized(&started);
    if (started == 0) {
      check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
      on_exit(end_mpi, nullptr);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  });
}

}  // namespace weft::comm
