// What the members of one group share: a ring of rounds, one per collective, reused in turn.
//
// Reuse needs no handshake. A member has at most kInFlight collectives unfinished, and to finish one needs all members
// to have started it. So when a member starts collective s + kRounds it has finished s + kRounds - kInFlight, which all
// have started, hence all have finished s + kRounds - 2 kInFlight = s: nobody looks at the round of s any more.
// Counters only grow (and wrap); each member knows the value that a counter reaches when a phase of a round is over.
// Bit 0 of a counter says that the wire was aborted, so that a waiter watches one word only; counts go in steps of 2.
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
constexpr std::size_t kMailBytes = 1024;

struct alignas(64) Round {
  std::atomic<std::uint32_t> arrived{0};   // members that have published their post
  std::atomic<std::uint32_t> done{0};      // chunks that are finished
  std::atomic<std::uint32_t> sleepers{0};  // members asleep on one of the two
};

// What one member says of one collective. Written before it arrives, read after all have.
struct alignas(64) Post {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;  // of the input
  int source = -1, target = -1;
  Collective what = Collective::kBarrier;
  Reduce reduce = Reduce::kSum;
  DType dtype = DType::kF32;
  std::atomic<std::uint32_t> next_chunk{0};  // of the member's share; whoever adds one runs that chunk
  std::atomic<std::uint64_t> number{0};      // of the collective, counted from 1: tells who has not come yet
};

struct Mail {
  alignas(64) std::array<std::byte, kMailBytes> bytes;
};

struct Ring {
  Ring(std::vector<int> members, std::uint32_t group)
      : members(std::move(members)),
        group(group),
        rounds(kRounds),
        posts(kRounds * this->members.size()),
        mail(kRounds * this->members.size()) {}

  Round& round(std::uint64_t number) { return rounds[number % kRounds]; }
  Post& post(std::uint64_t number, std::size_t rank) { return posts[number % kRounds * members.size() + rank]; }
  Mail& letter(std::uint64_t number, std::size_t rank) { return mail[number % kRounds * members.size() + rank]; }
  // The value of `arrived` when all members have come to the collective.
  std::uint32_t all_arrived(std::uint64_t number) const {
    return static_cast<std::uint32_t>((number + kRounds - 1) / kRounds * members.size() * kStep);
  }
  std::size_t bytes() const {
    return sizeof *this + kRounds * (sizeof(Round) + members.size() * (sizeof(Post) + sizeof(Mail)));
  }

  const std::vector<int> members;
  const std::uint32_t group;  // number of the member list, for the board
  std::vector<Round> rounds;
  std::vector<Post> posts;  // by round, then rank
  std::vector<Mail> mail;
};

}  // namespace weft::comm
