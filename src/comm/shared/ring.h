// The memory that the members of one group share on one host: a ring of rounds, one per collective, reused in turn.
//
// Reuse needs no handshake. A member has at most kInFlight collectives unfinished, and it can finish a collective only
// after all members have started it. So when a member starts collective s + kRounds, it has finished s + kRounds -
// kInFlight, and all have started that. Hence all have finished s + kRounds - 2 kInFlight = s, and no member reads the
// round of s any more. Counters only grow (and wrap); each member knows the value that a counter reaches when a phase
// of a round is over. Bit 0 of a counter says that the wire was aborted, so that a waiter watches only one word; counts
// go in steps of 2. Memory holds offsets instead of pointers, because processes map it at different addresses. All
// zeros is a fresh ring.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "comm/group.h"

namespace weft::comm {

constexpr std::uint64_t kInFlight = 16;
constexpr std::uint64_t kRounds = 2 * kInFlight;
constexpr std::uint32_t kAborted = 1, kStep = 2;

// Inputs up to this many bytes are copied to the peers in start: then nobody needs anybody's buffers, and a collective
// has one phase instead of two.
constexpr std::size_t kInlineBytes = 1024;

struct alignas(64) Round {
  std::atomic<std::uint32_t> arrived;   // members that have published their entry
  std::atomic<std::uint32_t> done;      // chunks that are finished
  std::atomic<std::uint32_t> sleepers;  // members asleep on one of the two
};

// What one member asks for in one collective.
struct Request {
  std::uint64_t in = 0, out = 0;  // places in the member's memory: see SharedWire::reach
  std::size_t count = 0;          // of the input
  int source = -1, target = -1;
  std::uint32_t tag = 0;  // the first of the message tags that it listens to; 0 on one host
  Collective what = Collective::kBarrier;
  Reduce reduce = Reduce::kSum;
  DType dtype = DType::kF32;

  std::size_t bytes() const { return count * size_of(dtype); }
};

// Written before the member arrives, read after all have.
struct alignas(64) RingEntry {
  Request request;
  std::atomic<std::uint32_t> next_chunk;  // of the member's share; whoever adds one runs that chunk
  std::atomic<std::uint64_t> number;      // of the collective, counted from 1: tells who has not come yet
};

struct InlineData {
  alignas(64) std::array<std::byte, kInlineBytes> bytes;
};

// The ring as one process sees it.
struct Ring {
  Round& round(std::uint64_t number) const { return rounds[number % kRounds]; }
  RingEntry& entry(std::uint64_t number, std::size_t rank) const {
    return entries[number % kRounds * members.size() + rank];
  }
  InlineData& inline_data_of(std::uint64_t number, std::size_t rank) const {
    return inline_data[number % kRounds * members.size() + rank];
  }
  // The value of `arrived` when all members have come to the collective.
  std::uint32_t all_arrived(std::uint64_t number) const {
    return static_cast<std::uint32_t>((number + kRounds - 1) / kRounds * members.size() * kStep);
  }
  static std::size_t bytes(std::size_t members) {
    return kRounds * (sizeof(Round) + members * (sizeof(RingEntry) + sizeof(InlineData)));
  }

  std::vector<ProcessorId> members;
  std::uint32_t list = 0;      // number of the member list, for the board
  std::uint64_t sequence = 0;  // which join of the list it belongs to
  std::uint64_t place = 0;     // for the block
  Round* rounds = nullptr;
  RingEntry* entries = nullptr;  // by round, then rank
  InlineData* inline_data = nullptr;
};

}  // namespace weft::comm
