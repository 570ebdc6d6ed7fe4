// Copies between an unsplit array on the host and its shards on processors.
#pragma once

#include "program/ir.h"
#include "weft/array.h"

namespace weft {

// Writes a processor's shard of `whole` (in the value's dim order and dtype) densely to `shard`.
void copy_to_shard(const Array& whole, const Value& value, const Mesh& mesh, ProcessorId processor, void* shard);

// Writes a processor's dense shard to its place in `whole`.
void copy_from_shard(const void* shard, const Value& value, const Mesh& mesh, ProcessorId processor, Array& whole);

// The same for `count` elements of the shard from `first` on, which `piece` holds.
void copy_piece_from_shard(const void* piece, std::int64_t first, std::int64_t count, const Value& value,
                           const Mesh& mesh, ProcessorId processor, Array& whole);

// Whether this processor is the one that speaks for its shard: coordinate 0 on every axis that replicates the value.
bool is_primary_shard(const Value& value, const Mesh& mesh, ProcessorId processor);

}  // namespace weft
