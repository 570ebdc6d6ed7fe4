// A block: the instructions of one program, or of the body of a loop or a fused instruction, on their way into the
// module. The functions below write one kind of instruction each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stablehlo/emit.h"
#include "stablehlo/storage.h"
#include "stablehlo/writer.h"

namespace weft::stablehlo {

// Thrown by the functions below: the instruction has no StableHLO form.
struct Refused {
  std::string reason;
};

// What all blocks of a module share.
struct ModuleState {
  Writer writer = {};
  EmitOptions options = {};
  std::vector<Result> host_results = {};
  Terms host_terms = {};
  std::vector<std::string> refusals = {};
  int channels = 0;
};

class Block {
 public:
  Block(ModuleState& state, const Program& program, Term seed, Term step, bool in_loop);
  // The body of a fused instruction of `around`, whose recomputation it shares.
  Block(Block& around, const Program& body);

  // Writes all instructions. Those without a form are listed in the state's refusals.
  void write();

  void define(ValueId id, const Term& term);
  void define(ValueId id, Stored stored);
  Term term(ValueId id);  // dense, in the value's dim order
  const Stored& storage(ValueId id) const { return *stored_[id]; }
  const Value& value(ValueId id) const { return program.values[id]; }

  // This processor's coordinate along the axes, an i64 scalar.
  Term coordinate(const Axes& axes);
  // The first global index of this processor's shard of a dim of the value, an i64 scalar; nothing if it is 0.
  std::optional<Term> shard_begin(ValueId id, const std::string& dim);

  const Program& program;
  ModuleState& state;
  Writer& w;
  Term seed, step;
  bool in_loop;

 private:
  void write(const Instr& instr);
  void locate(const Instr& instr);

  // Instructions that are computed again, to save memory. Their operands from outside go through a barrier: without it XLA
  // merges them with the first computation and keeps its results, or computes them long before they are needed.
  void write_again(const Instr& instr);
  Stored behind_barrier(const Stored& operand, int recompute);
  void note(const Instr& instr);

  ByValue<std::optional<Stored>> stored_;
  ByValue<std::optional<Term>> dense_;
  bool is_fused_ = false;
  ByValue<int> made_in_;               // the recomputation of the instruction that makes the value; -1: a constant
  std::optional<Term> last_gradient_;  // the last value that the backward pass has made
  // By recomputation: what it waits for, and its operands behind a barrier, by the term's id.
  std::map<int, std::optional<Term>> awaited_;
  std::map<std::pair<int, std::string>, Term> behind_;
};

void write_contract(Block& block, const Instr& instr);
void write_map(Block& block, const Instr& instr, const Map& operation);
void write_reduce(Block& block, const Instr& instr, const ReduceDims& operation);
void write_copy(Block& block, const Instr& instr);
void write_concat(Block& block, const Instr& instr, const Concat& operation);
void write_dynamic_slice(Block& block, const Instr& instr, const DynamicSlice& operation);
void write_dynamic_update(Block& block, const Instr& instr, const DynamicUpdate& operation);
void write_gather(Block& block, const Instr& instr, const Gather& operation);
void write_scatter_add(Block& block, const Instr& instr, const ScatterAdd& operation);
void write_scan(Block& block, const Instr& instr, const Scan& operation);
void write_sort(Block& block, const Instr& instr, const Sort& operation);
void write_convolve(Block& block, const Instr& instr, const Convolve& operation);
void write_pool(Block& block, const Instr& instr, const Pool& operation);
void write_attend(Block& block, const Instr& instr, const Attend& operation);
void write_attend_back(Block& block, const Instr& instr, const AttendBack& operation);
void write_random(Block& block, const Instr& instr, const Random& operation);
void write_host(Block& block, const Instr& instr, const Host& operation);
void write_view(Block& block, const Instr& instr, const View& operation);
void write_shard(Block& block, const Instr& instr, const Shard& operation);
void write_all_reduce(Block& block, const Instr& instr, const AllReduce& operation);
void write_reduce_scatter(Block& block, const Instr& instr, const ReduceScatter& operation);
void write_all_gather(Block& block, const Instr& instr, const AllGather& operation);
void write_all_to_all(Block& block, const Instr& instr, const AllToAll& operation);
void write_permute(Block& block, const Instr& instr, const Permute& operation);
void write_loop(Block& block, const Instr& instr, const Loop& operation);
void write_fused(Block& block, const Instr& instr, const Fused& operation);

// ---- shared by several kinds

// A pointwise function of operands of one shape and one dtype, without their broadcast.
Term pointwise_term(Writer& w, std::string_view function, const Terms& operands);
// attend and attend_back as cuDNN's fused attention; false, and nothing is written, if they do not fit it.
bool write_cudnn_attend(Block& block, const Instr& instr);
bool write_cudnn_attend_back(Block& block, const Instr& instr, const AttendBack& operation);
// The derivatives by q, k and v as the results of attend_back: apart, or joined.
void define_derivatives(Block& block, const Instr& instr, const AttendBack& operation, const Terms& all);
// x at `dim` = index, which is within x. Dims that both have are matched, all but `dim`. Gives the dims `out`.
Term gathered(Writer& w, const Term& x, std::string_view dim, const Term& index, const Shape& out);
// The element type of integers from -`largest` to `largest`: 32 bits where that is enough, since TPUs compute 64 bits in
// several steps.
Element index_element(std::int64_t largest);
// All group members' numbers, group by group: "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>".
std::string groups_text(const Mesh& mesh, const Axes& axes);

}  // namespace weft::stablehlo
