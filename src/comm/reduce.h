// Element-by-element reduction of several arrays in rank order: the arithmetic of all_reduce and reduce_scatter.
#pragma once

#include <cstddef>
#include <span>

#include "comm/group.h"
#include "weft/dtype.h"

namespace weft::comm {

// targets[t][i] = ((sources[0][i] op sources[1][i]) op sources[2][i]) … for all targets t and i < count. A target may
// be one of the sources, but not overlap it otherwise. The bits do not depend on the machine's vector width, nor on how
// a range is cut into calls. Reads sources.size() and writes targets.size() elements each, once: bound by memory.
void reduce_in_rank_order(DType dtype, Reduce reduce, std::span<const std::byte* const> sources,
                          std::span<std::byte* const> targets, std::size_t count);

// A leg of a reduction whose sources lie apart: begins with `before` (what the legs so far have made; null: the first
// leg) and leaves what it made in `after`, or, if that is null, finished in the targets. What is passed on are f32 for
// bf16 and f16, else elements of the dtype; so the bits are those of one reduction of all sources.
void reduce_leg(DType dtype, Reduce reduce, const std::byte* before, std::span<const std::byte* const> sources,
                std::byte* after, std::span<std::byte* const> targets, std::size_t count);
std::size_t leg_size_of(DType dtype);  // of one element between legs

}  // namespace weft::comm
