// Communicator: NCCL's communicator of a group, made without blocking, and the collectives on it.
//
// Threads: one thread starts collectives; start_abort and is_gone may be called from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "comm/nccl/calls.h"
#include "comm/nccl/operation.h"

namespace weft::comm {

class Communicator {
 public:
  Communicator(const NcclCalls& nccl, const CudaCalls& cuda, int device, int size, int rank);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int size() const { return size_; }
  int rank() const { return rank_; }

  static ncclUniqueId make_id(const NcclCalls& nccl);
  bool has_begun() const { return has_begun_; }
  void begin(const ncclUniqueId& id);  // all members do; returns at once

  // What NCCL says of it: done with what was called last, still at it, or failed with the text.
  enum class State : std::uint8_t { kReady, kBusy, kFailed };
  State state();
  const std::string& failure() const { return failure_; }

  // Puts the collective on the stream, if the state is ready; afterwards it is busy for some time. False if it failed.
  bool launch(const Operation& operation, cudaStream_t stream);

  // Ends what runs on the card. Blocks until NCCL has let go of it, which is after captured graphs with its collectives
  // are gone: to be called on a thread of its own. The communicator cannot be used any more.
  void abort();

 private:
  bool note(ncclResult_t result);
  ncclResult_t issue(const Operation& operation, const void* in, cudaStream_t stream);
  bool launch_alone(const Operation& operation, cudaStream_t stream);

  const NcclCalls& nccl_;
  const CudaCalls& cuda_;
  const int device_, size_, rank_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  bool has_begun_ = false;
  bool is_gone_ = false;
  std::string failure_;
};

}  // namespace weft::comm
