// The vector loops of the CPU engine: each does one thing to a tile of rows x cols numbers. Compiled for AVX2 and AVX-512;
// the machine's best is chosen when a kernel is bound. Bits are the same on both.
//
// Numbers lie in lanes: f32, bf16 and f16 as f32; i32, u8 and bool as i32; i64 and u32 as i64; f64 as f64. The caller
// of a loop rounds or wraps its result to the dtype (tile_convert.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/reduce.h"
#include "weft/dtype.h"

namespace weft::cpu {

enum class Lane : std::uint8_t { kF32, kF64, kI32, kI64 };

constexpr Lane lane_of(DType dtype) {
  switch (dtype) {
    case DType::kF64: return Lane::kF64;
    case DType::kI64:
    case DType::kU32: return Lane::kI64;
    case DType::kI32:
    case DType::kU8:
    case DType::kI8:
    case DType::kBool: return Lane::kI32;
    default: return Lane::kF32;
  }
}
constexpr std::size_t size_of(Lane lane) { return lane == Lane::kF64 || lane == Lane::kI64 ? 8 : 4; }

// Strides go from row to row, in elements. Within a row elements lie one after another.
struct TileArgs {
  const void* in[3] = {};
  std::ptrdiff_t in_stride[3] = {};
  void* out = nullptr;
  std::ptrdiff_t out_stride = 0;
  std::size_t rows = 0, cols = 0;
};
using TileOp = void (*)(const TileArgs&);

// Which operands are one number per row instead of a tile.
enum class Forms : std::uint8_t { kTiles, kFirstPerRow, kSecondPerRow };

// The loop of a pointwise function of one or two operands in these lanes; null where there is only the scalar function
// (kernels/pointwise.h). Comparisons give i32 lanes.
TileOp find_tile_op(std::string_view name, Lane lane, Forms forms);
// Two functions of f32 lanes in one loop, rounded after each as if they were two: half the traffic with the caches.
enum class Pair : std::uint8_t {
  kMultiplyAdd,       // a * b + c
  kMultiplySubtract,  // a * b - c
  kSubtractProduct,   // c - a * b
  kMultiplyMultiply,  // (a * b) * c
  kSubtractMultiply,  // (a - b) * c
  kExpOfDifference,   // exp(a - b)
};
// b and c may be one number per row.
TileOp pair_op(Pair pair, bool b_per_row, bool c_per_row);
// (condition in i32 lanes, a, b); a and b may be one number per row.
TileOp select_op(Lane lane, bool a_per_row, bool b_per_row);
TileOp copy_op(Lane lane);
// Each number of `in[0]`, one per row, over its row.
TileOp fill_op(Lane lane);

// out[row] = the row joined. The order is fixed: 64 running sums over blocks of 2048, blocks in double.
TileOp row_reduction(Reduce how, Lane lane);
// Joins the rows into out[col], doubles for floats and int64 for integers, which go on from tile to tile.
TileOp column_reduction(Reduce how, Lane lane);
// What joins with x to x.
double start_of(Reduce how);
std::int64_t integer_start_of(Reduce how);
double joined(Reduce how, double x, double y);
std::int64_t joined(Reduce how, std::int64_t x, std::int64_t y);

}  // namespace weft::cpu
