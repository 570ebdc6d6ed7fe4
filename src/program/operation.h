// The kinds of instructions: one struct per kind, which lists its fields once, for printer, parser and comparison.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "base/reduce.h"
#include "layout/sharding.h"
#include "program/windows.h"
#include "weft/dtype.h"
#include "weft/number.h"

namespace weft {

// One node of a map: "input" (`input`), "literal" (`literal`), "index" (global index along `dim`), "cast" or the name
// of a pointwise function of kernels/pointwise.h. `args` are earlier nodes. The last node is the result.
struct MapNode {
  std::string op;
  std::vector<int> args = {};
  DType dtype = DType::kF32;
  int input = 0;
  Number literal = 0;
  std::string dim = {};
  bool operator==(const MapNode&) const = default;
};

enum class Distribution : std::uint8_t { kUniform, kNormal, kTruncatedNormal, kBernoulli, kBits };

// out = sum over the dims absent from the output of x * y. Every such dim is in both.
struct Contract {
  static constexpr const char* kName = "contract";
  auto fields() { return std::make_tuple(); }
};
// A tree of pointwise functions; operands are broadcast to the output by name.
struct Map {
  static constexpr const char* kName = "map";
  std::vector<MapNode> nodes;
  auto fields() { return std::make_tuple(std::pair("expr", &nodes)); }
};
// Joins the dims that are absent from the output.
struct ReduceDims {
  static constexpr const char* kName = "reduce";
  Reduce how = Reduce::kSum;
  auto fields() { return std::make_tuple(std::pair("how", &how)); }
};
// The operand, dense, in the output's dim order.
struct Copy {
  static constexpr const char* kName = "copy";
  auto fields() { return std::make_tuple(); }
};
// The operands one after another along `dim`.
struct Concat {
  static constexpr const char* kName = "concat";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// (x, offset): the output's size of `dim` from the run-time offset on, clamped to fit. The offset may have other dims of
// x: each of their indices has its offset.
struct DynamicSlice {
  static constexpr const char* kName = "dynamic_slice";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// (x, piece, offset): x with `piece` written at the run-time offset along `dim`. Indices outside x are dropped. The offset
// may have other dims of x. An offset with `dim` alone has one index for each index of the piece along it, written in
// order; other dims of the piece may then be shorter than x's.
struct DynamicUpdate {
  static constexpr const char* kName = "dynamic_update";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// (x, indices): x at dim = index - start, start = the first global index of x's shard of `dim`; zeros where that is
// outside the shard. Dims that both have are matched.
struct Gather {
  static constexpr const char* kName = "gather";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// (indices, updates): zeros, and each update added at its index along `dim` (minus the output's shard start);
// indices outside the shard are dropped. Dims of the operands absent from the output are summed.
struct ScatterAdd {
  static constexpr const char* kName = "scatter_add";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// Running reduction along `dim`.
struct Scan {
  static constexpr const char* kName = "scan";
  std::string dim;
  Reduce how = Reduce::kSum;
  bool exclusive = false;
  bool reverse = false;
  auto fields() {
    return std::make_tuple(std::pair("dim", &dim), std::pair("how", &how), std::pair("exclusive", &exclusive),
                           std::pair("reverse", &reverse));
  }
};
// (x) or (x, indices) -> the first ones along `dim` in descending or ascending order, ties to the lower index, and
// their i32 indices (global along `dim`, or taken from the second operand). NaN counts as the largest. `k` is what the
// dim is called in the outputs, and its size there says how many.
struct Sort {
  static constexpr const char* kName = "sort";
  std::string dim;
  std::string k;
  bool ascending = false;
  auto fields() {
    return std::make_tuple(std::pair("dim", &dim), std::pair("k", &k), std::pair("ascending", &ascending));
  }
};
// Products summed over all that meets along the windows and over the other dims absent from the output, each of which
// is in both operands. forward: (x, filter) -> y; to_input: (y, filter) -> x; to_filter: (x, y) -> filter.
struct Convolve {
  static constexpr const char* kName = "convolve";
  Direction direction = Direction::kForward;
  std::vector<WindowDim> windows;
  auto fields() { return std::make_tuple(std::pair("direction", &direction), std::pair("windows", &windows)); }
};
// Joins what each window meets: max forward (x) -> y; sum forward (x) -> y, to_input (y) -> x; winners, the sum of v
// where x == y: forward (x, y, v like x) -> y, or (x, y) -> their number; to_input (x, y, v like y) -> x.
struct Pool {
  static constexpr const char* kName = "pool";
  PoolKind kind = PoolKind::kMax;
  Direction direction = Direction::kForward;
  std::vector<WindowDim> windows;
  auto fields() {
    return std::make_tuple(std::pair("kind", &kind), std::pair("direction", &direction),
                           std::pair("windows", &windows));
  }
};
// Softmax attention: y = softmax over `memory` of (scale q . k + bias), times v. Operands: q, k, v, then a bias if
// `biased`, then the ids of queries and of memory if `segments`, then the memory's end if `bounded`, then the sources if
// that names a dim. Dims of q that k and v lack share them; one of those is `length`, if it is not empty. Seen are equal
// ids, positions of `memory` before its end and, if `causal`, global positions of `memory` up to that of `length`.
// Keys and values behind the end are not read. With sources, position m of the memory at index i of the dim `sources` is
// the k and v at index sources[i, m] of that dim, clamped to fit; attend_back has no sources.
struct AttendRules {
  std::string length, memory, key, value;  // dims: of q, of k and v, of q and k, of v alone (may be called like `key`)
  double scale = 1;
  bool causal = false, biased = false, segments = false, bounded = false;
  std::string sources = {};
  auto fields() {
    return std::make_tuple(std::pair("length", &length), std::pair("memory", &memory), std::pair("key", &key),
                           std::pair("value", &value), std::pair("scale", &scale), std::pair("causal", &causal),
                           std::pair("biased", &biased), std::pair("segments", &segments),
                           std::pair("bounded", &bounded), std::pair("sources", &sources));
  }
};
// (q, k, v, …) -> y, q's dims with `value` for `key`, and the total of e^(score - the query's largest score), y's dims
// without `value`. A query that sees nothing gives zeros for both. The total is for the attend_back of the same engine,
// and may be another number there that says the same: the logsumexp of the scores.
struct Attend : AttendRules {
  static constexpr const char* kName = "attend";
};
// (q, k, v, y, total, dy, …) -> dq, dk, dv, and the bias's if it is asked for. If `joined` is not empty, the three are one
// value, one after another along that dim, which they lack, with q's dims: `length` for `memory`, `key` for `value`.
struct AttendBack : AttendRules {
  static constexpr const char* kName = "attend_back";
  std::string joined;
  auto fields() { return std::tuple_cat(AttendRules::fields(), std::make_tuple(std::pair("joined", &joined))); }
};
// Philox4x32-10 keyed by (seed, key); the counter is the row-major global index in the output's dim order, the step,
// and the iteration: an operand, an i64 scalar, 0 if there is none. uniform: [a, b); normal, truncated_normal: mean a,
// deviation b; bernoulli: 1 with probability a; bits: u32.
struct Random {
  static constexpr const char* kName = "random";
  Distribution distribution = Distribution::kUniform;
  double a = 0, b = 1;
  std::uint64_t key = 0;
  auto fields() {
    return std::make_tuple(std::pair("distribution", &distribution), std::pair("a", &a), std::pair("b", &b),
                           std::pair("key", &key));
  }
};
// This processor's coordinate along `axes`, an i64 scalar.
struct AxisIndex {
  static constexpr const char* kName = "axis_index";
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("axes", &axes)); }
};
// Given numbers, row-major; the same on every processor.
struct Constant {
  static constexpr const char* kName = "constant";
  std::vector<Number> data;
  auto fields() { return std::make_tuple(std::pair("data", &data)); }
};
// Hands its operand, under a name, to the host: "print" or "metric". No output.
struct Host {
  static constexpr const char* kName = "host";
  std::string what;
  std::string text;
  auto fields() { return std::make_tuple(std::pair("what", &what), std::pair("text", &text)); }
};
// The operand's storage seen otherwise: starts `offset` elements after the operand's first; `strides` per output dim.
struct View {
  static constexpr const char* kName = "view";
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  auto fields() { return std::make_tuple(std::pair("offset", &offset), std::pair("strides", &strides)); }
};
// This processor's own block of `dim` along `axes`, which become the minor axes of the dim. Shares storage.
struct Shard {
  static constexpr const char* kName = "shard";
  std::string dim;
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("dim", &dim), std::pair("axes", &axes)); }
};
// Sums (…) each operand over the group along `axes`; as many outputs as operands.
struct AllReduce {
  static constexpr const char* kName = "all_reduce";
  Reduce how = Reduce::kSum;
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("how", &how), std::pair("axes", &axes)); }
};
// As all_reduce, but of each operand a processor keeps its block of `dim` along `axes` (the dim's new minor axes).
struct ReduceScatter {
  static constexpr const char* kName = "reduce_scatter";
  Reduce how = Reduce::kSum;
  std::string dim;
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("how", &how), std::pair("dim", &dim), std::pair("axes", &axes)); }
};
// The shards of `dim` along `axes` (the dim's minor axes) side by side; as many outputs as operands.
struct AllGather {
  static constexpr const char* kName = "all_gather";
  std::string dim;
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("dim", &dim), std::pair("axes", &axes)); }
};
// Gathers `gather` along `axes` (its minor axes) while splitting `split` along them (they become its minor axes).
struct AllToAll {
  static constexpr const char* kName = "all_to_all";
  std::string split;
  std::string gather;
  Axes axes;
  auto fields() {
    return std::make_tuple(std::pair("split", &split), std::pair("gather", &gather), std::pair("axes", &axes));
  }
};
// The processor of rank r in its group along `axes` sends its operand to rank to[r] (-1: to none). A rank that no one
// sends to gets zeros. No two ranks send to one.
struct Permute {
  static constexpr const char* kName = "permute";
  Axes axes;
  std::vector<std::int64_t> to;
  auto fields() { return std::make_tuple(std::pair("axes", &axes), std::pair("to", &to)); }
};

// Finishes the collective that gave its operands (all of them, in order). From there to here nobody uses what the
// collective gives nor writes what it reads. A collective without a done is finished where it stands. No output.
struct Done {
  static constexpr const char* kName = "done";
  auto fields() { return std::make_tuple(); }
};

struct Program;
// A program inside another: copies are deep.
class Body {
 public:
  Body();
  explicit Body(Program program);
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(Body other) noexcept;
  ~Body();
  Program& operator*() const { return *program_; }
  Program* operator->() const { return program_.get(); }

 private:
  std::unique_ptr<Program> program_;
};

constexpr std::int64_t kMostTrips = std::int64_t{1} << 20;
// Runs `body` up to `trips` times, from one to kMostTrips. Operands: the first carried values, one per output, then
// what the body reads from outside, all dense. The body's inputs: the iteration (i64 scalar), the carried values, those
// from outside; its outputs: the next carried values and, if `stops`, a bool scalar, alike everywhere, that ends the
// loop. Outputs: the last carried values. A carried value may wait for a sum.
struct Loop {
  static constexpr const char* kName = "loop";
  std::int64_t trips = 0;
  bool stops = false;
  Body body;
  auto fields() { return std::make_tuple(std::pair("trips", &trips), std::pair("stops", &stops)); }
};

// One sweep over its operands: `body` holds maps and reductions alone, and what they hand to each other is never stored
// whole. The body's inputs are the operands, its outputs the outputs. program/fusible.h says which bodies there are.
struct Fused {
  static constexpr const char* kName = "fused";
  Body body;
  auto fields() { return std::make_tuple(); }
};

using Operation = std::variant<Contract, Map, ReduceDims, Copy, Concat, DynamicSlice, DynamicUpdate, Gather, ScatterAdd,
                               Scan, Sort, Convolve, Pool, Attend, AttendBack, Random, AxisIndex, Constant, Host, View,
                               Shard, AllReduce, ReduceScatter, AllGather, AllToAll, Permute, Done, Loop, Fused>;

}  // namespace weft
