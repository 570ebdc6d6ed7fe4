// A Wire connects the processors of one session. It makes their groups and says what memory peers can reach.
//
// After abort, after a missed deadline and after a disagreement between members a wire is unusable: every call throws
// the first failure. Threads: all functions of a Wire may be called from any thread at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/failure.h"
#include "comm/group.h"
#include "comm/memory.h"

namespace weft::comm {

class Wire {
 public:
  virtual ~Wire() = default;
  virtual int size() const = 0;  // processors

  // The processors of this process, ascending: all processors, or one if every process is one processor.
  virtual std::vector<ProcessorId> local() const = 0;

  // How many processors this host has, including those of other processes.
  virtual int on_host() const { return static_cast<int>(local().size()); }

  // The view of `processor` on the group of `members`, which are in rank order. Every member calls join with the same
  // list; the k-th join of a list by one member meets the k-th of the others. Does not wait for the others.
  // The wire outlives its groups.
  virtual std::unique_ptr<Group> join(ProcessorId processor, const std::vector<ProcessorId>& members) = 0;

  // Where the buffers that a processor gives to its groups must lie; null where peers reach all memory of this process.
  virtual PeerMemory* peer_memory(ProcessorId) { return nullptr; }

  // Ends every wait of every group with a FailureError; the first failure stays. When it returns, no processor reads or
  // writes a buffer of another.
  virtual void abort(const Failure& failure) = 0;
  void abort(std::string_view reason) { abort(Failure{.cause = std::string(reason)}); }

  // The progress board: by processor, what it does or did last.
  virtual std::vector<ProcessorStatus> report() const = 0;

  // The memory of the wire itself, without that of its processors.
  virtual std::size_t overhead_bytes() const = 0;
};

// False if another process reports the last failure of a wire: then this process prints nothing. The call has then waited
// for the end of that process, kTimeToReport at most, because mpirun kills all processes soon after one has ended.
bool reports_failure();
constexpr std::chrono::seconds kTimeToReport{2};

// The deadline of a start that has to wait because too many collectives are in flight.
constexpr std::chrono::minutes kStartDeadline{10};

// Processors as threads of this process, through shared memory.
std::unique_ptr<Wire> make_threads_wire(int processors);

// Processors as ranks of an MPI job: the first `processors` ranks, or all ranks. This process is one of them. Each of
// these ranks makes the call and waits for the others; the remaining ranks do not make it. The first call starts MPI. MPI
// ends with the process, in good order if the exit code is 0. UserError if this build has no MPI or the job has fewer
// ranks.
std::unique_ptr<Wire> make_mpi_wire(int processors = 0);

// The text of rank 0 of the MPI job, in every rank. Every rank makes the call. UserError if this build has no MPI.
std::string share_by_mpi(const std::string& text);

// The rank of `processor` among `members`. InternalError if they are no group of a wire of `size`: for the backends, at
// the top of join.
std::size_t rank_in_group(int size, ProcessorId processor, const std::vector<ProcessorId>& members);

// The process that reports the last failure of a wire in place of this one: 0 if it is this one, kOtherHost if it runs on
// another host. For the backends.
constexpr std::uint32_t kOtherHost = ~0u;
void set_reporter(std::uint32_t process);

// The MPI library of this build, "Open MPI v4.1.4 …"; empty if it has none.
std::string mpi_version();

}  // namespace weft::comm
