// The memory plan: the offset of every value in a processor's arena, known before the run and the same on every
// processor.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/ir.h"
#include "program/target.h"

namespace weft {

// A piece of the arena that one or more values use, one after another or as views of each other.
struct Storage {
  int first = 0, last = 0;  // positions in the body where it is written first and read last; -1 and size() are the ends
  std::int64_t bytes = 0;
  std::int64_t offset = 0;
};

struct MemoryPlan {
  // A variable, or a view of one: lies in the session's memory. In a loop's body also the carried values and those from
  // outside, which lie where the program around it has them.
  static constexpr int kExternal = -1;

  ByValue<int> storage_of;  // per value: an index into storages, or kExternal
  std::vector<Storage> storages;
  std::int64_t arena_bytes = 0;  // what a run allocates
  std::int64_t live_bytes = 0;   // the most that is live at once: no plan can need less
  int peak_position = 0;         // the position in the body where that is

  // A loop takes the arena of its body as one piece.
  struct Inner {
    std::int64_t offset = 0;       // in this arena
    std::vector<MemoryPlan> plan;  // just one
  };
  std::map<int, Inner> loops;       // by position in the body
  std::map<ValueId, ValueId> over;  // new contents that are written over old ones: of a variable or a carried value

  // In a loop's body: how the next values come to lie where the carried ones do, in this order. No move writes over
  // what a later one reads. Where next values go round in a ring of carried ones, one of the ring is saved first.
  struct Move {
    enum class How { kPlace, kSave, kPlaceSaved };
    std::size_t carried = 0;  // whose next value it is
    How how = How::kPlace;
  };
  std::vector<Move> moves;
  int ring_storage = kExternal;  // where a move saves: an index into storages, or kExternal where none does

  std::map<int, int> workspaces;  // by position in the body: the storage that its kernel has for its run
  std::map<ValueId, int>
      saved_views;  // views of variables that are kept when variables are written at the end: a storage
};

// Rounded up to a multiple of the alignment.
inline std::int64_t aligned_bytes(std::int64_t bytes, std::int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Values live from their definition to their last use; inputs from the start, outputs and updates to the end; what a
// collective reads until it is done. A map, put, all_reduce, permute or loop takes over the storage of an operand that
// dies with it and lies exactly like its result. In a loop's body the next of a carried value is written over it where
// it can be, and moved there at the end of a trip elsewhere. A kernel's workspace lives while its instruction runs.
// Offsets and sizes are multiples of the target's alignment.
MemoryPlan plan_memory(const Program& program, const Target& target = {});

std::int64_t bytes_of(const Value& value);            // on each processor
std::int64_t variable_bytes(const Program& program);  // of all variables

}  // namespace weft
