// Small messages between hosts: the entry of a member in a collective, with its data if they are small, and aborts.
//
// Receives are always open, so that a message never waits for its receiver. Threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/index.h"
#include "comm/mpi/calls.h"
#include "comm/shared/ring.h"

namespace weft::comm {

struct ControlMessage {
  enum class Kind : std::uint32_t { kPost, kAbort };
  Kind kind = Kind::kPost;
  int rank = 0;  // the sender's, in the group
  // The group: a hash of its member list, and which join of the list it is. And which of its collectives.
  std::uint64_t list = 0, sequence = 0, number = 0;
  Request request;
  std::array<char, 64> label = {};
  std::uint32_t length = 0;  // of the text: an entry's data, or the failure of an abort
  std::array<std::byte, kInlineBytes> text;
};

class ControlMessages {
 public:
  static constexpr int kTag = 1;  // of all messages; other messages use larger ones

  explicit ControlMessages(MPI_Comm ranks);
  ~ControlMessages();
  ControlMessages(const ControlMessages&) = delete;
  ControlMessages& operator=(const ControlMessages&) = delete;

  void send(const ControlMessage& message, ProcessorId processor);
  // Gives what has come to `read`.
  void receive(const std::function<void(const ControlMessage& message)>& read);
  bool all_sent();
  // Whether a message has gone there before. MPI ends a process that cannot make its first connection to another.
  bool has_met(ProcessorId processor) const { return met_[processor]; }

 private:
  struct Sent {
    ControlMessage message;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  void listen(std::size_t i);

  const MPI_Comm ranks_;
  std::vector<ControlMessage> coming_;
  std::vector<MPI_Request> requests_;  // of coming_
  std::vector<int> done_;
  std::vector<std::unique_ptr<Sent>> sent_;
  Indexed<ProcessorId, bool> met_;
};

}  // namespace weft::comm
