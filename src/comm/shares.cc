#include "comm/shares.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/index.h"
#include "comm/reduce.h"

namespace weft::comm {

namespace {

// Large enough that claiming a chunk costs nothing beside running it, small enough to even out late members.
constexpr std::size_t kChunkBytes = 128 << 10;
constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kTempBytes = 16 << 10;

// Bytes of a buffer.
struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t bytes() const { return end - begin; }
};

// One of `parts` nearly equal parts; borders fall on cache lines, so that no two threads write the same one.
Range cut(Range range, std::size_t part, std::size_t parts) {
  const std::size_t lines = (range.bytes() + kLineBytes - 1) / kLineBytes;
  const auto border = [&](std::size_t i) { return std::min(range.begin + lines * i / parts * kLineBytes, range.end); };
  return {border(part), border(part + 1)};
}

std::size_t chunks_of(std::size_t bytes) { return (bytes + kChunkBytes - 1) / kChunkBytes; }

std::size_t member_bytes(const Joint& joint) { return in_bytes(joint) / members_of(joint); }

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

// Reduces `range` of every input, `in_offset` further on, into the first `targets` of pointers.out.
void reduce(const Joint& joint, std::size_t in_offset, std::size_t targets, Range range, Pointers& pointers) {
  if (range.bytes() == 0) return;
  for (std::size_t p = 0; p < members_of(joint); ++p) pointers.in[p] = joint.in[p] + in_offset + range.begin;
  for (std::size_t t = 0; t < targets; ++t) pointers.out[t] += range.begin;
  reduce_in_rank_order(joint.dtype, joint.reduce, pointers.in, std::span(pointers.out).first(targets),
                       range.bytes() / size_of(joint.dtype));
}

// to_a = from_b and to_b = from_a, where to_a may be from_a and to_b may be from_b.
void exchange(const std::byte* from_a, const std::byte* from_b, std::byte* to_a, std::byte* to_b, std::size_t bytes) {
  std::array<std::byte, kTempBytes> temp;
  for (std::size_t at = 0; at < bytes; at += kTempBytes) {
    const std::size_t step = std::min(kTempBytes, bytes - at);
    std::memcpy(temp.data(), from_a + at, step);
    std::memcpy(to_a + at, from_b + at, step);
    std::memcpy(to_b + at, temp.data(), step);
  }
}

void exchange_blocks(const Joint& joint, std::size_t rank, std::size_t peer, Range range) {
  const std::size_t block = member_bytes(joint);
  const std::size_t mine = peer * block, theirs = rank * block;
  const std::size_t a = mine + range.begin, b = theirs + range.begin;
  if (peer == rank) copy(joint.out[rank] + a, joint.in[rank] + a, range.bytes());
  else exchange(joint.in[rank] + a, joint.in[peer] + b, joint.out[rank] + a, joint.out[peer] + b, range.bytes());
}

// Half of what `rank` and `peer` exchange, or all of rank's own block.
void run_all_to_all(const Joint& joint, std::size_t rank, std::size_t peer, std::size_t part, std::size_t parts) {
  Range range{0, member_bytes(joint)};
  if (peer != rank) range = cut(range, rank < peer ? 0 : 1, 2);
  exchange_blocks(joint, rank, peer, cut(range, part, parts));
}

// Follows the senders from `first` back and moves each one's input to its receiver, which has given up its own before.
// Ends at a member without a source or, in a ring, at `first`, whose input is then read from `saved`.
void follow_senders(const Joint& joint, int first, Range range, const std::byte* saved) {
  for (int to = first;;) {
    const int from = joint.source[at(to)];
    std::byte* out = joint.out[at(to)] + range.begin;
    if (from == kElsewhere) return;
    if (from < 0) {
      std::memset(out, 0, range.bytes());
      return;
    }
    if (from == first) return copy(out, saved, range.bytes());
    copy(out, joint.in[at(from)] + range.begin, range.bytes());
    to = from;
  }
}

// In a ring, the lowest rank starts.
bool starts_ring(const Joint& joint, int rank) {
  int from = joint.source[at(rank)];
  while (from > rank) from = joint.source[at(from)];
  return from == rank;
}

// A range of all the moves of a permutation, in an order in which every input is read before it may be overwritten.
void permute_range(const Joint& joint, Range range) {
  std::array<std::byte, kTempBytes> temp;
  const int size = static_cast<int>(members_of(joint));
  for (Range step{range.begin, 0}; step.begin < range.end; step.begin = step.end) {
    step.end = std::min(step.begin + kTempBytes, range.end);
    for (int rank = 0; rank < size; ++rank) {
      const std::size_t r = at(rank);
      if (std::find(joint.source.begin(), joint.source.end(), rank) == joint.source.end()) {
        follow_senders(joint, rank, step, nullptr);
      } else if (starts_ring(joint, rank)) {
        const bool in_place = joint.in[r] == joint.out[r] && joint.source[r] != rank;
        const std::byte* saved = joint.in[r] + step.begin;
        if (in_place) saved = static_cast<std::byte*>(std::memcpy(temp.data(), saved, step.bytes()));
        follow_senders(joint, rank, step, saved);
      }
    }
  }
}

}  // namespace

void run_permute(const Joint& joint, std::size_t begin, std::size_t end) { permute_range(joint, {begin, end}); }

void run_exchange(const Joint& joint, std::size_t rank, std::size_t peer, std::size_t begin, std::size_t end) {
  exchange_blocks(joint, rank, peer, {begin, end});
}

std::uint32_t chunks_per_share(const Joint& joint) {
  const std::size_t size = members_of(joint);
  switch (joint.what) {
    case Collective::kAllReduce:
    case Collective::kPermute: return static_cast<std::uint32_t>(chunks_of((in_bytes(joint) + size - 1) / size));
    case Collective::kReduceScatter: return static_cast<std::uint32_t>(chunks_of(member_bytes(joint)));
    case Collective::kAllGather: return static_cast<std::uint32_t>(size * chunks_of(in_bytes(joint)));
    case Collective::kAllToAll: return static_cast<std::uint32_t>(size * chunks_of(member_bytes(joint)));
    case Collective::kBarrier: return 0;
  }
  return 0;
}

void run_chunk(const Joint& joint, int rank, std::uint32_t chunk, Pointers& pointers) {
  const std::size_t size = members_of(joint), r = at(rank);
  const std::size_t chunks = chunks_per_share(joint), parts = chunks / size;
  const Range whole{0, in_bytes(joint)}, block{0, member_bytes(joint)};
  switch (joint.what) {
    case Collective::kAllReduce:
      std::copy(joint.out.begin(), joint.out.end(), pointers.out.begin());
      return reduce(joint, 0, size, cut(cut(whole, r, size), chunk, chunks), pointers);
    case Collective::kReduceScatter:
      pointers.out[0] = joint.out[r];
      return reduce(joint, r * block.end, 1, cut(block, chunk, chunks), pointers);
    case Collective::kAllGather: {
      const std::size_t peer = chunk / parts;
      const Range range = cut(whole, chunk % parts, parts);
      return copy(joint.out[r] + peer * whole.end + range.begin, joint.in[peer] + range.begin, range.bytes());
    }
    case Collective::kAllToAll: return run_all_to_all(joint, r, chunk / parts, chunk % parts, parts);
    case Collective::kPermute: return permute_range(joint, cut(cut(whole, r, size), chunk, chunks));
    case Collective::kBarrier: return;
  }
}

void run_for_one(const Joint& joint, int rank, Pointers& pointers) {
  const std::size_t size = members_of(joint), r = at(rank);
  const std::size_t whole = in_bytes(joint), block = member_bytes(joint);
  pointers.out[0] = joint.out[r];
  switch (joint.what) {
    case Collective::kAllReduce: return reduce(joint, 0, 1, {0, whole}, pointers);
    case Collective::kReduceScatter: return reduce(joint, r * block, 1, {0, block}, pointers);
    case Collective::kAllGather:
      for (std::size_t p = 0; p < size; ++p) copy(joint.out[r] + p * whole, joint.in[p], whole);
      return;
    case Collective::kAllToAll:
      for (std::size_t p = 0; p < size; ++p) copy(joint.out[r] + p * block, joint.in[p] + r * block, block);
      return;
    case Collective::kPermute:
      if (whole == 0) return;
      if (joint.source[r] < 0) std::memset(joint.out[r], 0, whole);
      else copy(joint.out[r], joint.in[at(joint.source[r])], whole);
      return;
    case Collective::kBarrier: return;
  }
}

}  // namespace weft::comm
