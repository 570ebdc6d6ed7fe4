// The collectives as work on memory that every member can reach, cut into shares and chunks.
//
// The share of a member is its part of the common work, the same bytes in any order of the members. Any thread may run
// any chunk of any share. Each chunk runs exactly once, and chunks touch disjoint memory. So peers can do the share of
// a late member. Nothing here waits or synchronises: the caller knows that all members have published their buffers.
// Used by every wire whose members share memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/group.h"

namespace weft::comm {

// What all members together asked for. Spans are indexed by rank.
struct Joint {
  Collective what = Collective::kBarrier;
  Reduce reduce = Reduce::kSum;
  DType dtype = DType::kF32;
  std::size_t count = 0;  // of every input
  std::span<const std::byte* const> in;
  std::span<std::byte* const> out;
  std::span<const int> source;  // permute: the rank that each member receives from, or -1
};

inline std::size_t members_of(const Joint& joint) { return joint.in.size(); }
inline std::size_t in_bytes(const Joint& joint) { return joint.count * size_of(joint.dtype); }

// Room for the pointers that one thread needs while it runs chunks of a group of that size.
struct Pointers {
  explicit Pointers(int size) : in(static_cast<std::size_t>(size)), out(static_cast<std::size_t>(size)) {}
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
};

// The number of chunks in every member's share.
std::uint32_t chunks_per_share(const Joint& joint);

// A source that is not among the members: its data come by other ways, the output is left alone.
constexpr int kElsewhere = -2;

// The bytes [begin, end) of all the moves of a permutation, and of what `rank` and `peer` exchange in an all_to_all.
void run_permute(const Joint& joint, std::size_t begin, std::size_t end);
void run_exchange(const Joint& joint, std::size_t rank, std::size_t peer, std::size_t begin, std::size_t end);

// Runs one chunk of the share of `rank`.
void run_chunk(const Joint& joint, int rank, std::uint32_t chunk, Pointers& pointers);

// Writes out[rank] alone. For inputs that are copies: the inputs are only read, and only out[rank] is looked at.
void run_for_one(const Joint& joint, int rank, Pointers& pointers);

}  // namespace weft::comm
