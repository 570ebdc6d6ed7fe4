// A wire joins the processors of one session: it makes their groups and says what memory peers can reach.
//
// After abort, after a missed deadline and after a disagreement between members a wire is unusable: every call says so
// with the first reason. Threads: all functions of a Wire may be called from any thread at any time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"
#include "comm/memory.h"

namespace weft::comm {

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int size() const = 0;  // processors

  // The processors of this process, ascending: all of them, or, where a process is one processor, that one.
  virtual std::vector<int> local() const = 0;

  // How many processors this host has, those of other processes included.
  virtual int on_host() const { return static_cast<int>(local().size()); }

  // The view of `processor` on the group of `members`, which are in rank order. Every member calls join with the same
  // list; the k-th join of a list by one member meets the k-th of the others. Does not wait for the others.
  // The wire outlives its groups.
  virtual std::unique_ptr<Group> join(int processor, const std::vector<int>& members) = 0;

  // Where the buffers that a processor gives to its groups must lie; null where peers reach all memory of this process.
  virtual PeerMemory* peer_memory(int) { return nullptr; }

  // Ends every wait of every group with a RunError that carries the reason; the first reason stays. When it returns,
  // no processor reads or writes a buffer of another.
  virtual void abort(std::string_view reason) = 0;

  // The progress board: one line per processor, what it does or did last.
  virtual std::string report() const = 0;

  // What the wire itself holds besides the memory of its processors.
  virtual std::size_t overhead_bytes() const = 0;
};

// False in a process whose last failure on a wire is reported by another process of this host: then it ends quietly.
bool reports_failure();

// The limit of the waits that start may have to do when too many collectives are in flight.
constexpr std::chrono::minutes kStartDeadline{10};

// Processors as threads of this process, through shared memory.
std::unique_ptr<Wire> make_threads_wire(int processors);

// Processors as ranks of an MPI job, this process being one of them: the first `processors` ranks, or all. Each of these
// calls it, the others do not, and it waits for them. The first call starts MPI; MPI ends with the process, in good
// order if its exit code is 0. UserError if this build has no MPI or the job has fewer ranks.
std::unique_ptr<Wire> make_mpi_wire(int processors = 0);

// The MPI library of this build, "Open MPI v4.1.4 …"; empty if it has none.
std::string mpi_version();

}  // namespace weft::comm
