// attend and attend_back: which queries share which memory, and who does them. Pairs of batch and head are divided over
// the workers in blocks, so that a worker keeps its rows.
#include <memory>

#include "base/dispatch.h"
#include "runtime/host/attend_views.h"
#include "runtime/cpu/attend_rows.h"
#include "runtime/cpu/kernels.h"
#include "runtime/reference/kernels.h"
#include "runtime/host/strided.h"

namespace weft::cpu {

namespace {

// The offsets of a value at every index of some dims, row-major.
std::vector<std::int64_t> offsets_over(const TensorView& view, const Shape& dims) {
  std::vector<std::int64_t> offsets{0};
  const std::vector<std::int64_t> strides = strides_along(view, dims);
  for (std::size_t d = 0; d < dims.rank(); ++d) {
    std::vector<std::int64_t> finer;
    for (std::int64_t offset : offsets)
      for (std::int64_t i = 0; i < dims[d].size; ++i) finer.push_back(offset + i * strides[d]);
    offsets = std::move(finer);
  }
  return offsets;
}

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
      : matrix_{view.data, view.dtype == DType::kBF16, stride(view, row), stride(view, column)},
        shared_(offsets_over(view, shared)),
        groups_(offsets_over(view, groups)) {}

  AttendMatrix at(std::int64_t s, std::int64_t g) const {
    AttendMatrix matrix = matrix_;
    if (!matrix.data) return matrix;
    const std::int64_t offset = shared_[static_cast<std::size_t>(s)] + groups_[static_cast<std::size_t>(g)];
    matrix.data = static_cast<std::byte*>(matrix.data) + offset * (matrix.half ? 2 : 4);
    return matrix;
  }

 private:
  AttendMatrix matrix_;
  std::vector<std::int64_t> shared_, groups_;
};

// Segment ids of any integer type, as lines of int64.
class Ids {
 public:
  Ids() = default;
  Ids(const TensorView& view, const Shape& shared, const Shape& groups, const std::string& along, std::int64_t size)
      : view_(view),
        shared_(offsets_over(view, shared)),
        groups_(offsets_over(view, groups)),
        size_(size),
        step_(stride(view, along)) {}

  void read(std::int64_t s, std::int64_t g, std::int64_t* to) const {
    const std::int64_t offset = shared_[static_cast<std::size_t>(s)] + groups_[static_cast<std::size_t>(g)];
    visit_dtype(view_.dtype, [&]<class T>() {
      const T* from = static_cast<const T*>(view_.data) + offset;
      for (std::int64_t i = 0; i < size_; ++i) to[i] = to_int64(from[i * step_]);
    });
  }

 private:
  TensorView view_;
  std::vector<std::int64_t> shared_, groups_;
  std::int64_t size_ = 0, step_ = 0;
};

class AttendKernel {
 public:
  explicit AttendKernel(const KernelArgs& args)
      : rules_(*attend_rules(args.instr)), back_(args.instr.is<AttendBack>()), workers_(*args.workers) {
    find_dims(args);
    place(args);
    floats_ = back_ ? back_scratch(sizes_) : forward_scratch(sizes_);
    const std::int64_t ids = rules_.segments ? sizes_.length + sizes_.memory : 0;
    workers_.reserve(static_cast<std::size_t>(floats_) * sizeof(float) +
                     static_cast<std::size_t>(ids) * sizeof(std::int64_t));
  }

  void run() {
    const std::int64_t items = back_ ? shared_ : shared_ * groups_;
    if (is_small()) return back_ ? run_back({0, items}, 0) : run_forward({0, items}, 0);  // nobody else is woken
    workers_.run([this, items](int worker) {
      const Share share = share_of(items, worker, workers_.size());
      if (back_) run_back(share, worker);
      else run_forward(share, worker);
    });
  }

 private:
  // Of the dims that only q has, one is walked in blocks; the others are groups.
  void find_dims(const KernelArgs& args) {
    const TensorView &q = args.inputs[0], &k = args.inputs[1];
    const AttendDims dims = attend_dims(rules_, q.shape, k.shape);
    if (rules_.length.empty() && !dims.rows.empty()) rules_.length = dims.rows[dims.rows.rank() - 1].name;
    shared_dims_ = dims.shared;
    group_dims_ = dims.rows.minus({{rules_.length.empty() ? rules_.key : rules_.length, 1}});
    shared_ = shared_dims_.elements();
    groups_ = group_dims_.elements();
    const auto length = q.shape.find(rules_.length);
    sizes_ = {.length = length ? q.shape[*length].size : 1,
              .memory = k.shape.size_of(rules_.memory),
              .key = k.shape.size_of(rules_.key),
              .value = args.inputs[2].shape.size_of(rules_.value),
              .scale = static_cast<float>(rules_.scale),
              .causal = rules_.causal,
              .ahead = (length ? q.begin[*length] : 0) - k.begin[k.shape.position(rules_.memory)]};
  }

  void place(const KernelArgs& args) {
    const AttendOperands at = attend_operands(args.instr);
    const auto matrices = [&](const TensorView& view, const std::string& row, const std::string& column) {
      return Matrices(view, shared_dims_, group_dims_, row, column);
    };
    const auto input = [&](int i) -> const TensorView& { return args.inputs[static_cast<std::size_t>(i)]; };
    q_ = matrices(input(0), rules_.length, rules_.key);
    k_ = matrices(input(1), rules_.memory, rules_.key);
    v_ = matrices(input(2), rules_.memory, rules_.value);
    y_ = matrices(back_ ? input(at.y) : args.outputs[0], rules_.length, rules_.value);
    total_ = matrices(back_ ? input(at.total) : args.outputs[1], rules_.length, "");
    if (at.bias >= 0) bias_ = matrices(input(at.bias), rules_.length, rules_.memory);
    if (rules_.segments) {
      query_ids_ = Ids(input(at.query_ids), shared_dims_, group_dims_, rules_.length, sizes_.length);
      memory_ids_ = Ids(input(at.memory_ids), shared_dims_, group_dims_, rules_.memory, sizes_.memory);
    }
    if (!back_) return;
    dy_ = matrices(input(at.dy), rules_.length, rules_.value);
    dq_ = matrices(derivative_view(args, 0), rules_.length, rules_.key);
    dk_ = matrices(derivative_view(args, 1), rules_.memory, rules_.key);
    dv_ = matrices(derivative_view(args, 2), rules_.memory, rules_.value);
  }

  AttendItem item(std::int64_t s, std::int64_t g, int worker) const {
    AttendItem item;
    item.q = q_.at(s, g);
    item.k = k_.at(s, g);
    item.v = v_.at(s, g);
    item.y = y_.at(s, g);
    item.bias = bias_.at(s, g);
    item.total = total_.at(s, g);
    if (rules_.segments) {
      auto* ids = reinterpret_cast<std::int64_t*>(scratch(worker) + floats_);
      query_ids_.read(s, g, ids);
      memory_ids_.read(s, g, ids + sizes_.length);
      item.query_ids = ids;
      item.memory_ids = ids + sizes_.length;
    }
    if (!back_) return item;
    item.dy = dy_.at(s, g);
    item.dq = dq_.at(s, g);
    item.dk = dk_.at(s, g);
    item.dv = dv_.at(s, g);
    return item;
  }

  // Products that take less time than it takes to wake a worker.
  bool is_small() const {
    constexpr std::int64_t kAlone = 1 << 18;
    return shared_ * groups_ * sizes_.length * sizes_.memory * (sizes_.key + sizes_.value) < kAlone;
  }

  void run_forward(const Share& share, int worker) const {
    for (std::int64_t i = share.begin; i < share.end; ++i)
      attend_rows(sizes_, item(i / groups_, i % groups_, worker), i == share.begin || i % groups_ == 0,
                  scratch(worker));
  }

  void run_back(const Share& share, int worker) const {
    for (std::int64_t s = share.begin; s < share.end; ++s)
      for (std::int64_t g = 0; g < groups_; ++g)
        attend_rows_back(sizes_, item(s, g, worker), g == 0, g + 1 == groups_, scratch(worker));
  }

  float* scratch(int worker) const { return reinterpret_cast<float*>(workers_.scratch(worker)); }

  AttendRules rules_;
  bool back_;
  Workers& workers_;
  Shape shared_dims_, group_dims_;
  std::int64_t shared_ = 1, groups_ = 1, floats_ = 0;
  AttendSizes sizes_;
  Matrices q_, k_, v_, y_, total_, bias_, dy_, dq_, dk_, dv_;
  Ids query_ids_, memory_ids_;
};

// What the vectors know: f32 and bf16, with sums in f32.
bool is_fast(const KernelArgs& args) {
  const auto narrow = [](const TensorView& x) {
    return x.dtype == DType::kF32 || x.dtype == DType::kBF16 || is_integer(x.dtype);
  };
  const AttendOperands at = attend_operands(args.instr);
  const TensorView& total = at.total >= 0 ? args.inputs[static_cast<std::size_t>(at.total)] : args.outputs[1];
  return std::all_of(args.inputs.begin(), args.inputs.end(), narrow) && total.dtype == DType::kF32;
}

Kernel bound(const KernelArgs& args) {
  const auto kernel = std::make_shared<AttendKernel>(args);
  return [kernel](const StepState&) { kernel->run(); };
}

}  // namespace

Kernel attend(const KernelArgs& args) {
  return is_fast(args) ? bound(args) : reference::serve(args, reference::attend);
}
Kernel attend_back(const KernelArgs& args) {
  return is_fast(args) ? bound(args) : reference::serve(args, reference::attend_back);
}

}  // namespace weft::cpu
