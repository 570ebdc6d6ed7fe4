// attend and attend_back: which queries share which memory, and who does them. Pairs of batch and head are divided over
// the workers in blocks, so that a worker keeps its rows. The derivative of a bias is a sum over pairs. One worker
// computes all pairs that add to the same numbers. If that would leave workers idle, several workers compute them
// into separate sums, which are then added in a fixed order.
#include <array>
#include <memory>
#include <span>

#include "base/dispatch.h"
#include "base/index.h"
#include "runtime/host/attend_views.h"
#include "runtime/cpu/attend_rows.h"
#include "runtime/cpu/kernels.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/strided.h"
#include "runtime/host/views.h"

namespace weft::cpu {

namespace {

// 0 along a dim that the view lacks.
std::int64_t stride(const TensorView& view, const std::string& dim) {
  const auto at = view.shape.find(dim);
  return at ? view.strides[*at] : 0;
}

// An operand as one matrix for each index of the shared dims and of the groups.
class Matrices {
 public:
  Matrices() = default;
  Matrices(const TensorView& view, const Shape& shared, const Shape& groups, const std::string& row,
           const std::string& column)
      : matrix_{view.data, view.dtype == DType::kBF16, stride(view, row), stride(view, column), 0},
        shared_(offsets_over(view, shared)),
        groups_(offsets_over(view, groups)) {}

  // Each row has sources along `dim`: the matrix of every index is that of the first source.
  Matrices(const TensorView& view, const Shape& shared, const Shape& groups, const std::string& row,
           const std::string& column, const std::string& dim)
      : Matrices(without_dim(view, dim), shared, groups, row, column) {
    matrix_.source = stride(view, dim);
  }

  const AttendMatrix& matrix() const { return matrix_; }  // the first
  AttendMatrix at(std::int64_t s, std::int64_t g) const { return at(s, g, matrix_.data); }
  // As if they lay there.
  AttendMatrix at(std::int64_t s, std::int64_t g, void* data) const {
    AttendMatrix matrix = matrix_;
    matrix.data = data;
    if (!data) return matrix;
    const std::int64_t offset = shared_[weft::at(s)] + groups_[weft::at(g)];
    matrix.data = static_cast<std::byte*>(matrix.data) + offset * (matrix.half ? 2 : 4);
    return matrix;
  }

 private:
  AttendMatrix matrix_;
  std::vector<std::int64_t> shared_, groups_;
};

// The derivative by a bias, in f32: for each index of the shared dims a slab over the bias's other dims. Items that add to
// it do so where it lies, or in a dense slab elsewhere.
class BiasDerivative {
 public:
  BiasDerivative() = default;
  BiasDerivative(const TensorView& view, const Shape& shared, const Shape& groups, const std::string& length,
                 const std::string& memory)
      : lying_(view, shared, groups, length, memory), column_(stride(view, memory)) {
    const Shape rows = view.shape.minus(shared).minus({{memory, 1}});
    const bool has_memory = view.shape.has(memory);
    const Shape slab = has_memory ? rows.plus({view.shape.dim(memory)}) : rows;
    elsewhere_ = Matrices(dense_view(nullptr, DType::kF32, slab), shared, groups, length, memory);
    rows_ = offsets_over(view, rows);
    columns_ = has_memory ? view.shape.size_of(memory) : 1;
  }

  bool exists() const { return !rows_.empty(); }
  std::int64_t elements() const { return static_cast<std::int64_t>(rows_.size()) * columns_; }

  // `slab`: null where it lies.
  AttendMatrix at(std::int64_t s, std::int64_t g, float* slab) const {
    return slab ? elsewhere_.at(s, g, slab) : lying_.at(s, g);
  }
  void clear(std::int64_t s, float* slab) const {
    if (slab) std::fill(slab, slab + elements(), 0.0f);
    else each(s, [](float& number, std::int64_t) { number = 0; });
  }
  void add(std::int64_t s, const float* slab) const {
    each(s, [slab](float& number, std::int64_t i) { number += slab[i]; });
  }

 private:
  // Calls visit(number, place in a dense slab).
  template <class Visit>
  void each(std::int64_t s, const Visit& visit) const {
    auto* slab = static_cast<float*>(lying_.at(s, 0).data);
    std::int64_t i = 0;
    for (std::int64_t offset : rows_)
      for (std::int64_t c = 0; c < columns_; ++c) visit(slab[offset + c * column_], i++);
  }

  Matrices lying_, elsewhere_;
  std::vector<std::int64_t> rows_;  // the offsets of a slab's rows, which go along the memory
  std::int64_t columns_ = 1, column_ = 0;
};

// Integers of any type, as lines of int64: segment ids, the memory's ends, sources.
class Ids {
 public:
  Ids() = default;
  Ids(const TensorView& view, const Shape& shared, const Shape& groups, const std::string& along)
      : view_(view),
        shared_(offsets_over(view, shared)),
        groups_(offsets_over(view, groups)),
        step_(stride(view, along)) {}

  bool has(const std::string& dim) const { return view_.shape.has(dim); }

  // The first `count` of a line.
  void read(std::int64_t s, std::int64_t g, std::int64_t count, std::int64_t* to) const {
    const std::int64_t offset = shared_[at(s)] + groups_[at(g)];
    visit_dtype(view_.dtype, [&]<class T>() {
      const T* from = static_cast<const T*>(view_.data) + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = to_int64(from[i * step_]);
    });
  }

 private:
  TensorView view_;
  std::vector<std::int64_t> shared_, groups_;
  std::int64_t step_ = 0;
};

constexpr std::int64_t kMostTogether = 16;

class AttendKernel {
 public:
  explicit AttendKernel(const KernelArgs& args)
      : rules_(*attend_rules(args.instr)), back_(args.instr.is<AttendBack>()), workers_(*args.workers) {
    find_dims(args);
    place(args);
    if (!back_ && reads_in_place(sizes_, k_.matrix(), v_.matrix())) together_ = find_together();
    floats_ = back_ ? back_scratch(sizes_) : together_ == 0 ? forward_scratch(sizes_) : together_ * few_scratch(sizes_);
    if (dbias_.exists() && !is_small(shared_ * sizes_.memory))
      parts_ = std::clamp<std::int64_t>(workers_.size() / kept_, 1, shared_ / kept_);
    if (parts_ > 1) floats_ += AttendSizes::padded(dbias_.elements());
    const std::int64_t ids =
        (rules_.segments ? sizes_.length + sizes_.memory : 0) + (rules_.sources.empty() ? 0 : sizes_.memory);
    workers_.reserve(static_cast<std::size_t>(floats_) * sizeof(float) +
                     static_cast<std::size_t>(ids) * sizeof(std::int64_t));
  }

  void run() {
    const std::int64_t seen = seen_in_all();
    if (is_small(seen))  // nobody else is woken
      return back_ ? run_back({0, kept_}, 0) : run_forward({0, shared_ * groups_}, 0);
    if (parts_ > 1) return run_parts();
    workers_.run([this, seen](int worker) {
      if (back_) run_back(share_of(kept_, worker, workers_.size()), worker);
      else run_forward({begin_of(worker, seen), begin_of(worker + 1, seen)}, worker);
    });
  }

 private:
  // Of the dims that only q has, one is walked in blocks; the others are groups.
  void find_dims(const KernelArgs& args) {
    const TensorView &q = args.inputs[0], &k = args.inputs[1];
    const AttendDims dims = attend_dims(rules_, q.shape, k.shape);
    if (rules_.length.empty() && !dims.rows.empty()) rules_.length = dims.rows[dims.rows.rank() - 1].name;
    shared_dims_ = dims.shared;
    kept_ = shared_dims_.elements();
    if (const int of_bias = bias_derivative(args.instr); of_bias >= 0) {
      const Shape summed = dims.shared.minus(args.outputs[at(of_bias)].shape);
      shared_dims_ = dims.shared.minus(summed).plus(summed);
      kept_ /= summed.elements();
    }
    group_dims_ = dims.rows.minus({{rules_.length.empty() ? rules_.key : rules_.length, 1}});
    shared_ = shared_dims_.elements();
    groups_ = group_dims_.elements();
    const auto length = q.shape.find(rules_.length);
    sizes_ = {.length = length ? q.shape[*length].size : 1,
              .memory = k.shape.size_of(rules_.memory),
              .key = k.shape.size_of(rules_.key),
              .value = args.inputs[2].shape.size_of(rules_.value),
              .end = k.shape.size_of(rules_.memory),
              .scale = static_cast<float>(rules_.scale),
              .causal = rules_.causal,
              .ahead = (length ? q.begin[*length] : 0) - k.begin[k.shape.position(rules_.memory)]};
  }

  void place(const KernelArgs& args) {
    const AttendOperands operands = attend_operands(args.instr);
    const auto matrices = [&](const TensorView& view, const std::string& row, const std::string& column) {
      return Matrices(view, shared_dims_, group_dims_, row, column);
    };
    const auto input = [&](int i) -> const TensorView& { return args.inputs[at(i)]; };
    q_ = matrices(input(0), rules_.length, rules_.key);
    k_ = of_memory(input(1), rules_.key);
    v_ = of_memory(input(2), rules_.value);
    y_ = matrices(back_ ? input(operands.y) : args.outputs[0], rules_.length, rules_.value);
    total_ = matrices(back_ ? input(operands.total) : args.outputs[1], rules_.length, "");
    if (operands.bias >= 0) bias_ = matrices(input(operands.bias), rules_.length, rules_.memory);
    if (rules_.segments) {
      query_ids_ = Ids(input(operands.query_ids), shared_dims_, group_dims_, rules_.length);
      memory_ids_ = Ids(input(operands.memory_ids), shared_dims_, group_dims_, rules_.memory);
    }
    if (rules_.bounded) ends_ = Ids(input(operands.memory_end), shared_dims_, group_dims_, "");
    if (operands.sources >= 0) {
      sources_ = Ids(input(operands.sources), shared_dims_, group_dims_, rules_.memory);
      last_source_ = shared_dims_.size_of(rules_.sources) - 1;
    }
    if (!back_) return;
    dy_ = matrices(input(operands.dy), rules_.length, rules_.value);
    dq_ = matrices(derivative_view(args.instr, args.outputs, 0), rules_.length, rules_.key);
    dk_ = matrices(derivative_view(args.instr, args.outputs, 1), rules_.memory, rules_.key);
    dv_ = matrices(derivative_view(args.instr, args.outputs, 2), rules_.memory, rules_.value);
    if (const int of_bias = bias_derivative(args.instr); of_bias >= 0)
      dbias_ = {args.outputs[at(of_bias)], shared_dims_, group_dims_, rules_.length, rules_.memory};
  }

  // k or v.
  Matrices of_memory(const TensorView& view, const std::string& column) const {
    if (rules_.sources.empty()) return {view, shared_dims_, group_dims_, rules_.memory, column};
    return {view, shared_dims_, group_dims_, rules_.memory, column, rules_.sources};
  }

  std::int64_t end_of(std::int64_t s) const {
    if (!rules_.bounded) return sizes_.memory;
    std::int64_t end = 0;
    ends_.read(s, 0, 1, &end);
    return std::clamp<std::int64_t>(end, 0, sizes_.memory);
  }

  AttendSizes sizes_of(std::int64_t s) const {
    AttendSizes sizes = sizes_;
    sizes.end = end_of(s);
    return sizes;
  }

  AttendItem item(std::int64_t s, std::int64_t g) const {
    AttendItem item;
    item.q = q_.at(s, g);
    item.k = k_.at(s, g);
    item.v = v_.at(s, g);
    item.y = y_.at(s, g);
    item.bias = bias_.at(s, g);
    item.total = total_.at(s, g);
    if (!back_) return item;
    item.dy = dy_.at(s, g);
    item.dq = dq_.at(s, g);
    item.dk = dk_.at(s, g);
    item.dv = dv_.at(s, g);
    return item;
  }

  // With the ids of its rows, which stay in the worker's scratch until the next call.
  AttendItem item_with_ids(std::int64_t s, std::int64_t g, int worker) const {
    AttendItem item = this->item(s, g);
    auto* ids = reinterpret_cast<std::int64_t*>(scratch(worker) + floats_);
    const std::int64_t end = end_of(s);
    if (rules_.segments) {
      query_ids_.read(s, g, sizes_.length, ids);
      memory_ids_.read(s, g, end, ids + sizes_.length);
      item.query_ids = ids;
      item.memory_ids = ids + sizes_.length;
      ids += sizes_.length + sizes_.memory;
    }
    if (!rules_.sources.empty()) {
      sources_.read(s, g, end, ids);
      for (std::int64_t m = 0; m < end; ++m) ids[m] = std::clamp<std::int64_t>(ids[m], 0, last_source_);
      item.sources = ids;
    }
    return item;
  }

  // Products that take less time than it takes to wake a worker. `seen`: memory rows of all shared indices.
  bool is_small(std::int64_t seen) const {
    constexpr std::int64_t kAlone = 1 << 18, kAloneForward = 1 << 16;
    return seen * groups_ * sizes_.length * (sizes_.key + sizes_.value) < (back_ ? kAlone : kAloneForward);
  }

  std::int64_t seen_in_all() const {
    if (!rules_.bounded) return shared_ * sizes_.memory;
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < shared_; ++s) sum += end_of(s);
    return sum;
  }

  // The first of a worker's items. Shares see about the same number of memory rows: with bounds, items differ in length.
  std::int64_t begin_of(int worker, std::int64_t seen) const {
    if (!rules_.bounded || worker == 0) return share_of(shared_ * groups_, worker, workers_.size()).begin;
    const std::int64_t before = seen * groups_ * worker / workers_.size();
    std::int64_t sum = 0;
    for (std::int64_t s = 0; s < shared_; ++s) {
      const std::int64_t end = end_of(s);
      if (sum + end * groups_ > before) return s * groups_ + (before - sum + end - 1) / end;
      sum += end * groups_;
    }
    return shared_ * groups_;
  }

  // How many items are computed together: they have the same ids and ends, and their scratch stays in the second cache.
  std::int64_t find_together() {
    constexpr std::int64_t kMostFloats = 1 << 16;
    const std::array ids{&query_ids_, &memory_ids_, &ends_, &sources_};
    const auto differs = [&](const Dim& dim) {
      return std::ranges::any_of(ids, [&](const Ids* some) { return some->has(dim.name); });
    };
    const Shape dims = shared_dims_.plus(group_dims_);
    for (std::size_t i = dims.rank(); i-- > 0 && !differs(dims[i]);) alike_ *= dims[i].size;
    return std::clamp<std::int64_t>(kMostFloats / few_scratch(sizes_), 1, std::min(kMostTogether, alike_));
  }

  void run_forward(const Share& share, int worker) const {
    if (together_ > 0) return run_few(share, worker);
    for (std::int64_t i = share.begin; i < share.end; ++i)
      attend_rows(sizes_of(i / groups_), item_with_ids(i / groups_, i % groups_, worker),
                  i == share.begin || i % groups_ == 0, scratch(worker));
  }

  void run_few(const Share& share, int worker) const {
    std::array<AttendItem, kMostTogether> items;
    for (std::int64_t i = share.begin; i < share.end;) {
      const std::int64_t count = std::min({together_, alike_ - i % alike_, share.end - i});
      items[0] = item_with_ids(i / groups_, i % groups_, worker);
      for (std::int64_t n = 1; n < count; ++n) {
        AttendItem& next = items[at(n)] = item((i + n) / groups_, (i + n) % groups_);
        next.query_ids = items[0].query_ids;
        next.memory_ids = items[0].memory_ids;
        next.sources = items[0].sources;
      }
      attend_few(sizes_of(i / groups_), std::span(items).first(at(count)), scratch(worker));
      i += count;
    }
  }

  // What shares no numbers of a bias's derivative with the rest: `share` of kept_.
  void run_back(const Share& share, int worker) const {
    const std::int64_t summed = shared_ / kept_;
    for (std::int64_t k = share.begin; k < share.end; ++k) add_up({k * summed, (k + 1) * summed}, nullptr, worker);
  }

  // `share` of shared_, all of which add to the same numbers; `slab` as in BiasDerivative.
  void add_up(const Share& share, float* slab, int worker) const {
    if (dbias_.exists()) dbias_.clear(share.begin, slab);
    for (std::int64_t s = share.begin; s < share.end; ++s)
      for (std::int64_t g = 0; g < groups_; ++g) {
        AttendItem one = item_with_ids(s, g, worker);
        if (dbias_.exists()) one.dbias = dbias_.at(s, g, slab);
        attend_rows_back(sizes_of(s), one, g == 0, g + 1 == groups_, scratch(worker));
      }
  }

  // One part for each worker, the first of those that add to the same numbers where these lie.
  void run_parts() const {
    const std::int64_t summed = shared_ / kept_;
    workers_.run([this, summed](int worker) {
      if (worker >= kept_ * parts_) return;
      const auto part = static_cast<int>(worker % parts_);
      const Share share = share_of(summed, part, static_cast<int>(parts_));
      const std::int64_t first = worker / parts_ * summed;
      add_up({first + share.begin, first + share.end}, part == 0 ? nullptr : slab(worker), worker);
    });
    workers_.run([this, summed](int worker) {
      const Share share = share_of(kept_, worker, workers_.size());
      for (std::int64_t k = share.begin; k < share.end; ++k)
        for (std::int64_t part = 1; part < parts_; ++part)
          dbias_.add(k * summed, slab(static_cast<int>(k * parts_ + part)));
    });
  }

  // Before the ids.
  float* slab(int worker) const { return scratch(worker) + floats_ - AttendSizes::padded(dbias_.elements()); }

  float* scratch(int worker) const { return reinterpret_cast<float*>(workers_.scratch(worker)); }

  AttendRules rules_;
  bool back_;
  Workers& workers_;
  Shape shared_dims_, group_dims_;
  std::int64_t shared_ = 1, groups_ = 1, floats_ = 0;
  std::int64_t alike_ = 1;     // neighbouring items that have the same ids and ends
  std::int64_t together_ = 0;  // of them, that attend_few() takes at a time; 0: none
  std::int64_t kept_ = 1;      // of shared_: those that the bias's derivative, if there is one, has for itself
  std::int64_t parts_ = 1;     // of the others
  AttendSizes sizes_;
  Matrices q_, k_, v_, y_, total_, bias_, dy_, dq_, dk_, dv_;
  BiasDerivative dbias_;
  Ids query_ids_, memory_ids_, ends_, sources_;
  std::int64_t last_source_ = 0;
};

// What the vectors know: f32 and bf16, with sums in f32.
bool is_fast(const KernelArgs& args) {
  const auto narrow = [](const TensorView& x) {
    return x.dtype == DType::kF32 || x.dtype == DType::kBF16 || is_integer(x.dtype);
  };
  const AttendOperands operands = attend_operands(args.instr);
  const TensorView& total = operands.total >= 0 ? args.inputs[at(operands.total)] : args.outputs[1];
  const int of_bias = bias_derivative(args.instr);
  return std::all_of(args.inputs.begin(), args.inputs.end(), narrow) && total.dtype == DType::kF32 &&
         (of_bias < 0 || args.outputs[at(of_bias)].dtype == DType::kF32);
}

Kernel bound(const KernelArgs& args) {
  const auto kernel = std::make_shared<AttendKernel>(args);
  return [kernel](const StepState&) { kernel->run(); };
}

Kernel attend(const KernelArgs& args) { return is_fast(args) ? bound(args) : reference::serve(args); }
Kernel attend_back(const KernelArgs& args) { return is_fast(args) ? bound(args) : reference::serve(args); }

const AddKernel kAttendKernel(kernels(), Attend::kName, attend);
const AddKernel kAttendBackKernel(kernels(), AttendBack::kName, attend_back);

}  // namespace

}  // namespace weft::cpu
