// Values with their storage. StableHLO has no views: a view becomes slices, reshapes and transpositions of the dense
// value whose storage it shares.
#pragma once

#include <optional>

#include "stablehlo/writer.h"

namespace weft::stablehlo {

// A level of storage: `size` places, `step` elements of the storage apart, `dense` elements of the term apart.
struct Level {
  std::int64_t size = 1, step = 1, dense = 1;
};

// Element (i, j, …) of a value lies `offset` + i strides[0] + j strides[1] + … elements after the first of the storage.
// `root` is a dense term that holds the storage, or, after a shard, the part of it that `levels` say.
struct Stored {
  Term root;
  std::vector<Level> levels;  // of the root, steps descending, merged where they can be
  Shape shape;
  std::int64_t offset = 0;
  Sizes strides;
};

// A dense value.
Stored stored(const Term& term);
// A dense term that holds the part of `whole`'s storage that `shard` has: whole's dims, one of them shorter.
Stored stored_part(const Term& shard, const Stored& whole);
Stored view_of(const Stored& x, const Shape& shape, std::int64_t offset, const Sizes& strides);

// The value as a dense term. Nothing if it leaves the part of the storage that the root holds.
std::optional<Term> dense_term(Writer& writer, const Stored& value);

}  // namespace weft::stablehlo
