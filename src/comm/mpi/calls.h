// MPI, started once per process and with errors as exceptions. The only header that brings in mpi.h.
#pragma once

#include <string>

#include <mpi.h>

namespace weft::comm {

// Starts MPI if nobody has. It ends when the process exits with code 0; a process that fails does not wait for others.
void start_mpi();

// RunError with MPI's own text if the code is not MPI_SUCCESS.
void check_mpi(int code, const char* call);

}  // namespace weft::comm
