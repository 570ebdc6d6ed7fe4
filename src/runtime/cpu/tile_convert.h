// Between stored elements of a dtype and lanes, and between lanes.
#pragma once

#include "runtime/cpu/tile_ops.h"
#include "kernels/pointwise.h"

namespace weft::cpu {

// Whether an element of the dtype is stored as its lane is: it needs no conversion.
constexpr bool is_lane(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 || dtype == DType::kI64;
}

// `count` elements that lie `step` apart, to lanes side by side; and back.
using LoadOp = void (*)(const void* from, std::ptrdiff_t step, void* to, std::size_t count);
using StoreOp = void (*)(const void* from, void* to, std::ptrdiff_t step, std::size_t count);
LoadOp load_op(DType dtype);
StoreOp store_op(DType dtype);

// Lanes of one dtype as those of another, by the rules of base/dispatch.h.
TileOp cast_op(DType from, DType to);
// Rounds or wraps lanes to what the dtype can hold, in place or not; null where every lane is one of its numbers.
TileOp fit_op(DType dtype);
// A pointwise function that has no vector loop, by its scalar: the operands as doubles, or as int64.
void apply_scalars(const Pointwise& function, Lane in, Lane out, Forms forms, const TileArgs& args);

// One number.
void set_lane(Lane lane, void* to, double value);
void set_lane(Lane lane, void* to, std::int64_t value);

}  // namespace weft::cpu
