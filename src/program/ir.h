// The program: what every processor runs. Straight-line code on shards; one text for all processors.
//
// A value is defined once, by an input, a variable or an instruction, and carries its local shape and sharding. Dims are
// matched by name everywhere. A `view` or `shard` shares the storage of its operand and costs nothing; every other
// instruction writes new, dense, row-major storage. Variables keep their old contents until the program has ended.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "base/phase.h"
#include "base/reduce.h"
#include "layout/sharding.h"
#include "program/windows.h"
#include "weft/dim.h"
#include "weft/dtype.h"
#include "weft/mesh.h"

namespace weft {

using ValueId = int;

struct Value {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // local
  Sharding sharding;
};

// One node of a map: "input" (`input`), "literal" (`literal`), "index" (global index along `dim`), "cast" or the name
// of a pointwise function of kernels/pointwise.h. `args` are earlier nodes. The last node is the result.
struct MapNode {
  std::string op;
  std::vector<int> args = {};
  DType dtype = DType::kF32;
  int input = 0;
  double literal = 0;
  std::string dim = {};
  bool operator==(const MapNode&) const = default;
};

enum class Distribution : std::uint8_t { kUniform, kNormal, kTruncatedNormal, kBernoulli, kBits };

// --- What an instruction does. Each struct names its fields once, for printer, parser and comparison. ---

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
// (x, offset): the output's size of `dim` from the run-time offset on, clamped to fit.
struct Take {
  static constexpr const char* kName = "take";
  std::string dim;
  auto fields() { return std::make_tuple(std::pair("dim", &dim)); }
};
// (x, piece, offset): x with `piece` written at the run-time offset along `dim`. Indices outside x are dropped.
struct Put {
  static constexpr const char* kName = "put";
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
// (x) or (x, indices) -> the k largest along `dim`, descending, ties to the lower index, and their i32 indices (global
// along `dim`, or taken from the second operand). `k` is the new dim.
struct TopK {
  static constexpr const char* kName = "top_k";
  std::string dim;
  std::string k;
  auto fields() { return std::make_tuple(std::pair("dim", &dim), std::pair("k", &k)); }
};
// Products summed over all that meets along the windows and over the other dims absent from the output, each of which is
// in both operands. forward: (x, filter) -> y; to_input: (y, filter) -> x; to_filter: (x, y) -> filter.
struct Convolve {
  static constexpr const char* kName = "convolve";
  Direction direction = Direction::kForward;
  std::vector<WindowDim> windows;
  auto fields() { return std::make_tuple(std::pair("direction", &direction), std::pair("windows", &windows)); }
};
// Joins what each window meets: max forward (x) -> y; sum forward (x) -> y, to_input (y) -> x; winners, the sum of v where
// x == y: forward (x, y, v like x) -> y, or (x, y) -> their number; to_input (x, y, v like y) -> x.
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
// Philox4x32-10 keyed by (seed, key); the counter is the row-major global index in the output's dim order, and the step.
// uniform: [a, b); normal, truncated_normal: mean a, deviation b; bernoulli: 1 with probability a; bits: u32.
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
  std::vector<double> data;
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
// As all_reduce, but each processor keeps its block of `dim` along `axes` (which become the dim's minor axes).
struct ReduceScatter {
  static constexpr const char* kName = "reduce_scatter";
  Reduce how = Reduce::kSum;
  std::string dim;
  Axes axes;
  auto fields() { return std::make_tuple(std::pair("how", &how), std::pair("dim", &dim), std::pair("axes", &axes)); }
};
// The shards of `dim` along `axes` (the dim's minor axes) side by side.
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

using Work = std::variant<Contract, Map, ReduceDims, Copy, Concat, Take, Put, Gather, ScatterAdd, Scan, TopK, Convolve,
                          Pool, Random, AxisIndex, Constant, Host, View, Shard, AllReduce, ReduceScatter, AllGather,
                          AllToAll, Permute>;

// Where an instruction comes from: its phase and the user's lines, each "file:line op".
struct Origin {
  Phase phase = Phase::kForward;
  std::vector<std::string> causes;
};

struct Instr {
  Work work;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  Origin origin;

  template <class T>
  const T* as() const {
    return std::get_if<T>(&work);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(work);
  }
};

struct ProgramInput {
  std::string name;
  ValueId value = 0;
};
struct ProgramVariable {
  std::string name;
  ValueId value = 0;              // the contents at the start of the step
  std::optional<ValueId> update;  // the contents after it
  bool trainable = true;
};
struct ProgramOutput {
  std::string name;
  ValueId value = 0;
};

struct Program {
  Mesh mesh;
  std::string layout;
  std::vector<Value> values;
  std::vector<ProgramInput> inputs;
  std::vector<ProgramVariable> variables;
  std::vector<Instr> body;
  std::vector<ProgramOutput> outputs;
};

// A view or shard: shares its operand's storage.
bool is_view(const Instr& instr);
bool is_collective(const Instr& instr);
// The axes a collective talks along; empty for other instructions.
Axes axes_of(const Instr& instr);
const char* name_of(const Instr& instr);
const char* name_of(Distribution distribution);
// What a convolve or pool calls x, y and filter, operand or output (a pool has no filter: -1).
struct WindowRoles {
  ValueId x = -1, y = -1, filter = -1;
};
WindowRoles roles_of(const Instr& instr);

}  // namespace weft
