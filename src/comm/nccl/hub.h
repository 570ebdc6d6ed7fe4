// The hub of a job: a thread of rank 0 to which every rank is connected. It passes messages on, gathers texts of all
// ranks, keeps the first failure, and sees when the process of a rank ends.
//
//   rank to hub                            hub to rank
//   kHello     token, rank, size, process  kWelcome    nothing: it is the hub of the job
//                                          kRefuse     whose fault, code, what, where, fix
//   kExchange  text                        kExchanged  the texts of all ranks, once all have sent one
//   kSend      ranks, payload              kDeliver    rank of the sender, payload
//   kAbort     failure                     kAborted    rank that reports it, failure
//   kStatus    failure with a status       (kept for the report of a rank that ends)
//   kBye       nothing: it leaves          kBye        nothing: rank 0 leaves
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/nccl/socket.h"

namespace weft::comm {

enum class FrameKind : std::uint8_t {
  kHello,
  kWelcome,
  kExchange,
  kSend,
  kAbort,
  kStatus,
  kBye,
  kRefuse,
  kExchanged,
  kDeliver,
  kAborted
};

constexpr std::size_t kFailureFrameBytes = 8 << 10;

class Hub {
 public:
  // `patience`: how long it waits for all ranks to come. `token`: what a rank of this job says.
  Hub(Socket listening, int size, std::uint64_t token, std::chrono::nanoseconds patience);
  ~Hub();  // lets every rank that is still connected go first, for a short time
  int port() const { return port_; }
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

 private:
  struct State;
  const int port_;
  const std::unique_ptr<State> state_;
  std::thread thread_;
};

}  // namespace weft::comm
