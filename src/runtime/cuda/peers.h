// Peers: the processors of a program in other processes, each with its card. Collectives with them go over NCCL. Without NCCL's header no_nccl.cc is built, and there are none.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>
#include <vector>

#include "comm/nccl/operation.h"
#include "comm/wire.h"
#include "runtime/cuda/work.h"

namespace weft::cuda {

// A place in pinned memory that the card writes: how many collectives it has begun and ended (two steps each), and the
// number of the one that it began last.
struct ProgressWords {
  unsigned long long steps = 0, number = 0;
};

class Peers {
 public:
  virtual ~Peers() = default;
  virtual ProcessorId me() const = 0;
  virtual int device() const = 0;           // of CUDA
  virtual cudaStream_t stream() const = 0;  // for collectives beside other work

  // What puts a collective of these members on a stream. Every member makes the same calls in the same order; the first
  // call with a list of members waits for them. FailureError if they do not come in time.
  virtual Issue collective(const std::vector<ProcessorId>& members, const comm::Operation& operation) = 0;
  // The number under which the progress words and reports know the collective.
  virtual std::uint64_t number_of(const comm::Call& call) = 0;
  virtual ProgressWords* progress() const = 0;

  // Returns when the stream has done all that was put on it. FailureError if another processor has failed, if NCCL has,
  // or if a collective hangs for longer than the deadline: then it says who is missing.
  virtual void wait(cudaStream_t stream, comm::Deadline deadline) = 0;
  // Throws what wait would, if there has been a failure.
  virtual void check() = 0;
  // After a failure: whether the stream has come to its end, for which the call waits a short time.
  virtual bool drains(cudaStream_t stream) = 0;
};

// Null: the wire has all processors in this process, or is not nccl.
std::unique_ptr<Peers> peers_on(comm::Wire& wire);

// The wire of this process's job. UserError or RunError if it cannot be made.
std::unique_ptr<comm::Wire> make_nccl_wire(int processors);
std::string describe_nccl();  // the version found, or why there is none

}  // namespace weft::cuda
