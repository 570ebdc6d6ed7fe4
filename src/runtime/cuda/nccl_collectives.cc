#include "runtime/cuda/nccl_collectives.h"

#include "base/index.h"
#include "base/str.h"
#include "runtime/cuda/sweep.h"
#include "runtime/cuda/text.h"
#include "runtime/host/blocks.h"
#include "runtime/host/strided.h"
#include "weft/error.h"

namespace weft::cuda {

// The number before the count: the host reads them in the other order.
const char* const kProgressText = "*number = value;\n__threadfence_system();\n*steps = *steps + 1;\n";

std::string gathered_reduction_text(const TensorView& result, std::int64_t first, std::int64_t step, int members,
                                    Reduce how) {
  const std::int64_t elements = result.shape.elements();
  const std::vector<Run> runs = joined_runs({result.shape.begin(), result.shape.end()}, {result.strides});
  const auto element = [&](int q) {
    return str("(", wide_type(result.dtype), ")widen(get(x[", (first + q * step) * elements, "ll + i]))");
  };
  std::string text = element(0);
  for (int q = 1; q < members; ++q) text = str(join_type(how), "()(", text, ", ", element(q), ")");
  const char* stored = stored_type(result.dtype);
  return str("y[", offset_text(runs, 0, "i"), "] = put<", stored, ">(narrow<", stored, ">(", text, "));\n");
}

namespace {

using comm::Collective;
using comm::Operation;

// One collective instruction on its way to NCCL.
class Exchange {
 public:
  Exchange(const Work& work, Peers& peers)
      : work_(work), peers_(peers), members_(work.program.mesh.group(work.processor, axes_of(work.instr))) {
    while (members_[at(rank_)] != work.processor) ++rank_;
  }

  int size() const { return static_cast<int>(members_.size()); }
  int rank() const { return rank_; }

  // Dense memory for `count` values of that shape, one after another.
  TensorView workspace(const Shape& shape, DType dtype, int count) const {
    const auto bytes = static_cast<std::size_t>(shape.elements() * count) * size_of(dtype);
    return dense_view(static_cast<std::byte*>(work_.workspace(bytes)), dtype, shape);
  }
  static TensorView after(TensorView view, std::int64_t count) {
    view.data = static_cast<std::byte*>(view.data) +
                count * view.shape.elements() * static_cast<std::int64_t>(size_of(view.dtype));
    return view;
  }

  void move(const TensorView& from, const TensorView& to) const { copy_elements(work_, from, to); }

  // The elements of `view` without gaps, in the order of `shape`: the view itself if it lies so.
  bool lies_as(const TensorView& view, const Shape& shape) const {
    return view.shape == shape && view.strides == dense_strides(shape);
  }

  void call(Operation operation) const {
    const Instr& instr = work_.instr;
    const std::uint64_t number = peers_.number_of(
        {.processor = work_.processor,
         .what = operation.what,
         .label = str("of '", work_.program.values[instr.outputs[0]].name, "', ", join(instr.origin.causes, ", ")),
         .count = operation.in_count,
         .dtype = operation.dtype,
         .reduce = operation.reduce,
         .source = operation.source,
         .target = operation.target,
         .members = {.processors = members_}});
    if (comm::needs_scratch(operation))
      operation.scratch = work_.workspace(operation.in_count * size_of(operation.dtype));
    mark(number);
    work_.call(peers_.collective(members_, operation));
    mark(number);
  }

  // Max and min of floats, in rank order: NCCL's lose a NaN. `gathered` holds everyone's block of the shape of `result`,
  // `step` blocks apart, the first at `first`.
  void reduce(const TensorView& gathered, std::int64_t first, std::int64_t step, const TensorView& result,
              Reduce how) const {
    launch_per_element(work_, result.shape.elements(),
                       {in(result.dtype, "x", gathered.data), out(result.dtype, "y", result.data)},
                       gathered_reduction_text(result, first, step, size(), how));
  }

 private:
  // Counts the begin or the end of a collective where the host sees it.
  void mark(std::uint64_t number) const {
    ProgressWords* words = peers_.progress();
    work_.launch(1, 1,
                 {typed("volatile unsigned long long", "steps", &words->steps),
                  typed("volatile unsigned long long", "number", &words->number),
                  cuda::number("value", static_cast<std::int64_t>(number))},
                 kProgressText);
  }

  const Work& work_;
  Peers& peers_;
  const std::vector<ProcessorId> members_;
  int rank_ = 0;
};

std::size_t count_of(const TensorView& view) { return static_cast<std::size_t>(view.shape.elements()); }

void all_reduce(const Exchange& with, const TensorView& x, const TensorView& y, Reduce how) {
  if (comm::loses_nan(Collective::kAllReduce, x.dtype, how)) {
    const TensorView all = with.workspace(y.shape, y.dtype, with.size()), mine = Exchange::after(all, with.rank());
    with.move(x, mine);
    with.call({Collective::kAllGather, mine.data, all.data, count_of(y), count_of(y) * at(with.size()), y.dtype});
    return with.reduce(all, 0, 1, y, how);
  }
  const bool lies = with.lies_as(x, y.shape);
  if (!lies) with.move(x, y);
  with.call({Collective::kAllReduce, lies ? x.data : y.data, y.data, count_of(y), count_of(y), y.dtype, how});
}

void reduce_scatter(const Exchange& with, const TensorView& x, const TensorView& y, const ReduceScatter& operation) {
  const int size = with.size();
  const bool gathers = comm::loses_nan(Collective::kReduceScatter, x.dtype, operation.how);
  TensorView blocks = x;
  TensorView all;
  if (gathers) {
    all = with.workspace(y.shape, y.dtype, size * size);
    blocks = Exchange::after(all, with.rank() * size);
  } else if (!lies_in_blocks(x, operation.dim)) {
    blocks = with.workspace(y.shape, y.dtype, size);
  }
  for (int r = 0; r < size && blocks.data != x.data; ++r)
    with.move(block_of(x, operation.dim, size, r), Exchange::after(blocks, r));
  const std::size_t count = count_of(y);
  if (!gathers)
    return with.call(
        {Collective::kReduceScatter, blocks.data, y.data, count * at(size), count, y.dtype, operation.how});
  with.call({Collective::kAllGather, blocks.data, all.data, count * at(size), count * at(size * size), y.dtype});
  with.reduce(all, with.rank(), size, y, operation.how);
}

void all_gather(const Exchange& with, const TensorView& x, const TensorView& y, const std::string& dim) {
  const int size = with.size();
  const Shape one = block_of(y, dim, size, 0).shape;
  const bool direct = lies_in_blocks(y, dim);
  const TensorView all =
      direct ? dense_view(static_cast<std::byte*>(y.data), y.dtype, one) : with.workspace(one, y.dtype, size);
  const TensorView mine = Exchange::after(all, with.rank());
  const bool lies = with.lies_as(x, one);
  if (!lies) with.move(x, mine);
  with.call({Collective::kAllGather, lies ? x.data : mine.data, all.data, count_of(mine), count_of(y), y.dtype});
  for (int r = 0; r < size && !direct; ++r) with.move(Exchange::after(all, r), block_of(y, dim, size, r));
}

void all_to_all(const Exchange& with, const TensorView& x, const TensorView& y, const AllToAll& operation) {
  const int size = with.size();
  const Shape one = block_of(x, operation.split, size, 0).shape;
  const bool packs = !lies_in_blocks(x, operation.split), unpacks = !lies_in_blocks(y, operation.gather);
  TensorView sent = x, received = y;
  if (packs) sent = with.workspace(one, x.dtype, size);
  for (int r = 0; r < size && packs; ++r) with.move(block_of(x, operation.split, size, r), Exchange::after(sent, r));
  if (unpacks) received = with.workspace(one, x.dtype, size);
  with.call({Collective::kAllToAll, sent.data, received.data, count_of(x), count_of(y), x.dtype});
  for (int r = 0; r < size && unpacks; ++r)
    with.move(Exchange::after(received, r), block_of(y, operation.gather, size, r));
}

void permute(const Exchange& with, const TensorView& x, const TensorView& y, const Permute& operation) {
  Operation how{.what = Collective::kPermute,
                .in = y.data,
                .out = y.data,
                .in_count = count_of(y),
                .out_count = count_of(y),
                .dtype = y.dtype};
  how.target = static_cast<int>(operation.to[at(with.rank())]);
  for (std::size_t r = 0; r < operation.to.size(); ++r)
    if (operation.to[r] == with.rank()) how.source = static_cast<int>(r);
  if (with.lies_as(x, y.shape)) how.in = x.data;
  else with.move(x, y);
  with.call(how);
}

}  // namespace

void nccl_collective(const Work& work, Peers& peers) {
  const Exchange with(work, peers);
  for (std::size_t k = 0; k < work.inputs.size(); ++k) {
    const TensorView &x = work.inputs[k], &y = work.outputs[k];
    if (const auto* operation = work.instr.as<AllReduce>()) all_reduce(with, x, y, operation->how);
    else if (const auto* scatter = work.instr.as<ReduceScatter>()) reduce_scatter(with, x, y, *scatter);
    else if (const auto* gather = work.instr.as<AllGather>()) all_gather(with, x, y, gather->dim);
    else if (const auto* exchange = work.instr.as<AllToAll>()) all_to_all(with, x, y, *exchange);
    else if (const auto* moved = work.instr.as<Permute>()) permute(with, x, y, *moved);
    else throw InternalError("a collective that the CUDA engine does not know");
  }
}

std::int64_t nccl_collective_bytes(const Program& program, const Instr& instr,
                                   const ByValue<std::vector<std::int64_t>>& strides) {
  if (!is_collective(instr)) return 0;
  const auto size = static_cast<std::int64_t>(program.mesh.group(ProcessorId(0), axes_of(instr)).size());
  const auto bytes = [&](ValueId id) { return card_aligned(bytes_of(program.values[id])); };
  const auto if_packed = [&](ValueId id, const std::string& dim) {
    return lies_in_blocks(unplaced_view(program, id, strides), dim) ? 0 : bytes(id);
  };
  std::int64_t all = 0;
  for (std::size_t k = 0; k < instr.inputs.size(); ++k) {
    const ValueId x = instr.inputs[k], y = instr.outputs[k];
    const DType dtype = program.values[x].dtype;
    if (const auto* reduce = instr.as<AllReduce>()) {
      if (comm::loses_nan(Collective::kAllReduce, dtype, reduce->how))
        all += card_aligned(size * bytes_of(program.values[y]));
    } else if (const auto* scatter = instr.as<ReduceScatter>()) {
      all += comm::loses_nan(Collective::kReduceScatter, dtype, scatter->how)
                 ? card_aligned(size * bytes_of(program.values[x]))
                 : if_packed(x, scatter->dim);
    } else if (const auto* gather = instr.as<AllGather>()) {
      all += if_packed(y, gather->dim);
    } else if (const auto* exchange = instr.as<AllToAll>()) {
      all += if_packed(x, exchange->split) + if_packed(y, exchange->gather);
    } else if (instr.is<Permute>()) {
      all += bytes(y);
    }
  }
  return all;
}

}  // namespace weft::cuda
