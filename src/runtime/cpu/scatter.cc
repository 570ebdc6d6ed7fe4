// scatter_add: every worker owns a run of the output's rows, lists the updates of each, in their order, and writes each
// row once: zeros, or the sum of its updates in double. No update is added twice.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/index.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/tile_convert.h"
#include "runtime/host/views.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/strided.h"
#include "runtime/host/workers.h"

namespace weft::cpu {

namespace {

// A position of the updates: where its index, its update and its rows in the output begin.
struct Position {
  std::int64_t index = 0, update = 0, group = 0;
};

class ScatterKernel {
 public:
  ScatterKernel(const KernelArgs& args, const std::string& dim)
      : indices_(args.inputs[0]), updates_(args.inputs[1]), out_(args.outputs[0]), workers_(*args.workers) {
    const std::size_t d = out_.shape.position(dim);
    rows_ = out_.shape[d].size;
    row_stride_ = out_.strides[d];
    begin_ = out_.begin[d];
    for (const Dim& other : out_.shape)
      if (other.name != dim) (indices_.shape.has(other.name) ? groups_ : inner_).push_back(other);
    for (const Dim& other : groups_) group_count_ *= other.size;
    for (const Dim& other : inner_) length_ *= other.size;
    list_positions();
    heads_.resize(static_cast<std::size_t>(group_count_ * rows_));
    next_.resize(positions_.size());
    const auto length = static_cast<std::size_t>(length_);
    workers_.reserve(length * sizeof(double) + length * sizeof(float) + 64);
  }

  // Rows must be one run of memory, in the updates and in the output, and long enough to be worth listing.
  static bool takes(const TensorView& indices, const TensorView& updates, const TensorView& out,
                    const std::string& dim) {
    if (lane_of(out.dtype) != Lane::kF32 || out.shape.elements() >= (std::int64_t{1} << 40)) return false;
    std::int64_t length = 1;
    for (std::size_t d = out.shape.rank(); d-- > 0;) {
      const std::string& name = out.shape[d].name;
      if (name == dim || indices.shape.has(name)) continue;
      if (out.strides[d] != length || updates.strides[updates.shape.position(name)] != length) return false;
      length *= out.shape[d].size;
    }
    return length >= 8;
  }

  void run() {
    if (static_cast<std::int64_t>(positions_.size()) * length_ + group_count_ * rows_ * length_ < kAlone)
      return run_part(0, {0, group_count_ * rows_});
    workers_.run([&](int worker) { run_part(worker, share_of(group_count_ * rows_, worker, workers_.size())); });
  }

 private:
  static constexpr std::int64_t kAlone = 1 << 13;
  static constexpr std::int32_t kNone = -1;

  // Of all dims but the inner ones, in the order of the reference: the updates' dims, then those of the indices.
  void list_positions() {
    std::vector<Dim> dims;
    for (const Dim& dim : updates_.shape.plus(indices_.shape)) {
      const bool is_inner = std::ranges::any_of(inner_, [&](const Dim& other) { return other.name == dim.name; });
      if (!is_inner) dims.push_back(dim);
    }
    const Shape shape(dims);
    const std::vector<std::int64_t> index = strides_along(indices_, shape), update = strides_along(updates_, shape);
    const std::vector<std::int64_t> group = strides_along(dense_view(nullptr, DType::kF32, Shape(groups_)), shape);
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      Position position;
      std::int64_t rest = i;
      for (std::size_t d = shape.rank(); d-- > 0; rest /= shape[d].size) {
        const std::int64_t at = rest % shape[d].size;
        position.index += at * index[d];
        position.update += at * update[d];
        position.group += at * group[d];
      }
      positions_.push_back(position);
    }
    std::vector<std::int64_t> out = strides_along(out_, Shape(groups_));
    for (std::int64_t g = 0; g < group_count_; ++g) {
      std::int64_t rest = g, offset = 0;
      for (std::size_t d = groups_.size(); d-- > 0; rest /= groups_[d].size) offset += rest % groups_[d].size * out[d];
      group_offsets_.push_back(offset);
    }
  }

  // From the last to the first: each list then begins with the first.
  void list_updates(Share rows) {
    std::fill(heads_.begin() + rows.begin, heads_.begin() + rows.end, kNone);
    for (std::size_t p = positions_.size(); p-- > 0;) {
      const std::int64_t index = from_start(integer_at(indices_, positions_[p].index), begin_);
      if (index < 0 || index >= rows_) continue;
      const std::int64_t row = positions_[p].group * rows_ + index;
      if (row < rows.begin || row >= rows.end) continue;
      auto& head = heads_[at(row)];
      next_[p] = head;
      head = static_cast<std::int32_t>(p);
    }
  }

  void run_part(int worker, Share rows) {
    list_updates(rows);
    const auto bytes = static_cast<std::int64_t>(weft::size_of(out_.dtype));
    const auto row_bytes = static_cast<std::size_t>(length_ * bytes);
    auto* sums = reinterpret_cast<double*>(workers_.scratch(worker));
    auto* lanes = reinterpret_cast<float*>(sums + length_);
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      std::byte* to =
          static_cast<std::byte*>(out_.data) + (group_offsets_[at(row / rows_)] + row % rows_ * row_stride_) * bytes;
      const std::int32_t first = heads_[at(row)];
      if (first == kNone) std::memset(to, 0, row_bytes);
      else if (next_[at(first)] == kNone) std::memcpy(to, update(first), row_bytes);
      else sum(first, to, sums, lanes);
    }
  }

  const std::byte* update(std::int32_t p) const {
    return static_cast<const std::byte*>(updates_.data) +
           positions_[at(p)].update * static_cast<std::int64_t>(weft::size_of(updates_.dtype));
  }

  void sum(std::int32_t first, std::byte* to, double* sums, float* lanes) const {
    std::fill_n(sums, length_, 0.0);
    const auto length = static_cast<std::size_t>(length_);
    for (std::int32_t p = first; p != kNone; p = next_[at(p)]) {
      load_(update(p), 1, lanes, length);
      add_({{lanes}, {0}, sums, 0, 1, length});
    }
    for (std::size_t i = 0; i < length; ++i) lanes[i] = static_cast<float>(sums[i]);
    store_(lanes, to, 1, length);
  }

  TensorView indices_, updates_, out_;
  Workers& workers_;
  std::vector<Dim> groups_, inner_;  // dims of the output: matched with the indices; of a row
  std::int64_t rows_ = 1, row_stride_ = 0, begin_ = 0, group_count_ = 1, length_ = 1;
  std::vector<Position> positions_;
  std::vector<std::int64_t> group_offsets_;
  std::vector<std::int32_t> heads_, next_;  // the first update of each row, and of each update the next
  LoadOp load_ = load_op(updates_.dtype);
  StoreOp store_ = store_op(out_.dtype);
  TileOp add_ = column_reduction(Reduce::kSum, Lane::kF32);
};

// See WorkspaceBytes.
std::int64_t scatter_bytes(const Program& program, const Instr& instr,
                           const ByValue<std::vector<std::int64_t>>& strides) {
  const auto input = [&](std::size_t i) { return unplaced_view(program, instr.inputs[i], strides); };
  const bool fast = ScatterKernel::takes(input(0), input(1), unplaced_view(program, instr.outputs[0], strides),
                                         instr.as<ScatterAdd>()->dim);
  return fast ? 0 : reference::wide_bytes(program, instr, strides);
}

Kernel scatter_add(const KernelArgs& args) {
  const std::string& dim = args.instr.as<ScatterAdd>()->dim;
  if (!ScatterKernel::takes(args.inputs[0], args.inputs[1], args.outputs[0], dim)) return reference::serve(args);
  return [kernel = std::make_shared<ScatterKernel>(args, dim)](const StepState&) { kernel->run(); };
}

const AddKernel kScatterAddKernel(kernels(), ScatterAdd::kName, scatter_add, scatter_bytes);

}  // namespace

}  // namespace weft::cpu
