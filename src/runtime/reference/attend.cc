// attend and attend_back, one query at a time: all its scores in doubles, then what follows from them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "base/index.h"
#include "language/shape_math.h"
#include "runtime/host/attend_views.h"
#include "runtime/reference/kernels.h"
#include "runtime/reference/windows.h"

namespace weft::reference {

namespace {

// Numbers that are added to the scores, or are sums over scores: one for many where they lack a dim.
class OfScores {
 public:
  OfScores(const TensorView& view, const AttendDims& dims, const Dim& memory)
      : numbers(view, view.shape),
        shared_(offsets_over(dense_view(nullptr, view.dtype, view.shape), dims.shared)),
        rows_(offsets_over(dense_view(nullptr, view.dtype, view.shape), dims.rows)),
        memory_(offsets_over(dense_view(nullptr, view.dtype, view.shape), {memory})) {}

  double& at(std::int64_t s, std::int64_t r, std::int64_t m) {
    return *numbers.at(shared_[weft::at(s)] + rows_[weft::at(r)] + memory_[weft::at(m)]);
  }

  Packed numbers;

 private:
  std::vector<std::int64_t> shared_, rows_, memory_;
};

// The scores of one query against all of its memory, from packed operands: [shared, rows, key], [shared, memory, key].
class Scores {
 public:
  explicit Scores(const KernelArgs& args)
      : rules_(*attend_rules(args.instr)),
        dims_(attend_dims(rules_, args.inputs[0].shape, args.inputs[1].shape)),
        memory_dim_{args.inputs[1].shape.dim(rules_.memory)},
        q(args.inputs[0], dims_.shared.plus(dims_.rows).plus({args.inputs[0].shape.dim(rules_.key)})),
        k(args.inputs[1], dims_.shared.plus({memory_dim_}).plus({args.inputs[1].shape.dim(rules_.key)})),
        v(args.inputs[2], dims_.shared.plus({memory_dim_}).plus({args.inputs[2].shape.dim(rules_.value)})),
        shared(dims_.shared.elements()),
        rows(dims_.rows.elements()),
        memory(memory_dim_.size),
        key(args.inputs[0].shape.size_of(rules_.key)),
        value(args.inputs[2].shape.size_of(rules_.value)),
        of_row(static_cast<std::size_t>(memory)) {
    const AttendOperands operands = attend_operands(args.instr);
    const auto mask = [&](int operand, const Shape& order) {
      if (operand >= 0) masks_.emplace_back(args.inputs[at(operand)], order);
    };
    if (operands.bias >= 0) bias_.emplace(args.inputs[at(operands.bias)], dims_, memory_dim_);
    mask(operands.query_ids, row_order());
    mask(operands.memory_ids, dims_.shared.plus({memory_dim_}));
    if (operands.memory_end >= 0) end_.emplace(args.inputs[at(operands.memory_end)], dims_.shared);
    if (operands.sources >= 0) {
      sources_.emplace(args.inputs[at(operands.sources)], dims_.shared.plus({memory_dim_}));
      const std::size_t dim = dims_.shared.position(rules_.sources);
      source_size_ = dims_.shared[dim].size;
      source_step_ = dense_strides(dims_.shared)[dim];
    }
    find_positions(args.inputs[0], args.inputs[1]);
  }

  Shape row_order() const { return dims_.shared.plus(dims_.rows); }
  Shape value_order(const TensorView& v) const { return row_order().plus({v.shape.dim(rules_.value)}); }
  double scale() const { return rules_.scale; }
  OfScores like_scores(const TensorView& view) const { return {view, dims_, memory_dim_}; }

  void read() {
    for (Packed* x : {&q, &k, &v}) x->read();
    for (Packed& mask : masks_) mask.read();
    if (bias_) bias_->numbers.read();
    if (end_) end_->read();
    if (sources_) sources_->read();
  }

  // The number of the key and value at position m of the memory of shared index s.
  std::int64_t row_of(std::int64_t s, std::int64_t m) {
    if (!sources_) return s * memory + m;
    const double last = static_cast<double>(source_size_ - 1);
    const auto source = static_cast<std::int64_t>(std::clamp(*sources_->at(s * memory + m), 0.0, last));
    return (s + (source - s / source_step_ % source_size_) * source_step_) * memory + m;
  }

  // What lies behind is not read.
  std::int64_t end_of(std::int64_t s) {
    return end_ ? static_cast<std::int64_t>(std::clamp(*end_->at(s), 0.0, static_cast<double>(memory))) : memory;
  }

  // Fills of_row; -inf where nothing is seen.
  void make(std::int64_t s, std::int64_t r) {
    const double* query = q.at((s * rows + r) * key);
    of_row.assign(of_row.size(), -INFINITY);
    for (std::int64_t m = 0; m < end_of(s); ++m) {
      double sum = 0;
      for (std::int64_t d = 0; d < key; ++d) sum += query[d] * k.at(row_of(s, m) * key)[d];
      sum *= rules_.scale;
      if (bias_) sum += bias_->at(s, r, m);
      if (sees(s, r, m)) of_row[at(m)] = sum;
    }
  }

  // Of the row that was made last; -inf if nothing is seen.
  double largest() const { return *std::max_element(of_row.begin(), of_row.end()); }

 private:
  void find_positions(const TensorView& q_view, const TensorView& k_view) {
    positions_.assign(static_cast<std::size_t>(rows), 0);
    memory_begin_ = k_view.begin[k_view.shape.position(rules_.memory)];
    if (!rules_.causal) return;
    const std::size_t length = dims_.rows.position(rules_.length);
    const std::int64_t step = dense_strides(dims_.rows)[length];
    const std::int64_t begin = q_view.begin[q_view.shape.position(rules_.length)];
    for (std::int64_t r = 0; r < rows; ++r) positions_[at(r)] = begin + r / step % dims_.rows[length].size;
  }

  bool sees(std::int64_t s, std::int64_t r, std::int64_t m) {
    if (rules_.causal && memory_begin_ + m > positions_[at(r)]) return false;
    if (!rules_.segments) return true;
    return *masks_[0].at(s * rows + r) == *masks_[1].at(s * memory + m);
  }

  AttendRules rules_;
  AttendDims dims_;
  Dim memory_dim_;
  std::optional<OfScores> bias_;
  std::vector<Packed> masks_;  // the segments of queries and of memory
  std::optional<Packed> end_, sources_;
  std::int64_t source_size_ = 1, source_step_ = 1;  // of the sources' dim among the shared ones
  std::vector<std::int64_t> positions_;             // global, of each row
  std::int64_t memory_begin_ = 0;

 public:
  Packed q, k, v;
  std::int64_t shared, rows, memory, key, value;
  std::vector<double> of_row;
};

class AttendKernel {
 public:
  explicit AttendKernel(const KernelArgs& args)
      : scores_(args),
        y_(args.outputs[0], scores_.value_order(args.inputs[2])),
        total_(args.outputs[1], scores_.row_order()) {}

  void run() {
    scores_.read();
    y_.fill(0);
    total_.fill(0);
    for (std::int64_t s = 0; s < scores_.shared; ++s)
      for (std::int64_t r = 0; r < scores_.rows; ++r) row(s, r);
    y_.write();
    total_.write();
  }

 private:
  void row(std::int64_t s, std::int64_t r) {
    scores_.make(s, r);
    const double most = scores_.largest();
    if (most == -INFINITY) return;
    double total = 0;
    double* y = y_.at((s * scores_.rows + r) * scores_.value);
    for (std::int64_t m = 0; m < scores_.end_of(s); ++m) {
      const double weight = std::exp(scores_.of_row[at(m)] - most);
      const double* v = scores_.v.at(scores_.row_of(s, m) * scores_.value);
      total += weight;
      for (std::int64_t d = 0; d < scores_.value; ++d) y[d] += weight * v[d];
    }
    for (std::int64_t d = 0; d < scores_.value; ++d) y[d] /= total;
    *total_.at(s * scores_.rows + r) = total;
  }

  Scores scores_;
  Packed y_, total_;
};

class AttendBackKernel {
 public:
  explicit AttendBackKernel(const KernelArgs& args)
      : scores_(args),
        y_(args.inputs[3], scores_.value_order(args.inputs[2])),
        total_(args.inputs[4], scores_.row_order()),
        dy_(args.inputs[5], scores_.value_order(args.inputs[2])),
        dq_(like(args, 0)),
        dk_(like(args, 1)),
        dv_(like(args, 2)) {
    const int of_bias = bias_derivative(args.instr);
    if (of_bias >= 0) dbias_ = scores_.like_scores(args.outputs[at(of_bias)]);
  }

  void run() {
    scores_.read();
    for (Packed* x : {&y_, &total_, &dy_}) x->read();
    for (Packed* x : {&dq_, &dk_, &dv_}) x->fill(0);
    if (dbias_) dbias_->numbers.fill(0);
    for (std::int64_t s = 0; s < scores_.shared; ++s)
      for (std::int64_t r = 0; r < scores_.rows; ++r) row(s, r);
    for (Packed* x : {&dq_, &dk_, &dv_}) x->write();
    if (dbias_) dbias_->numbers.write();
  }

 private:
  // The i-th derivative in the order of its operand's pack.
  static Packed like(const KernelArgs& args, int i) {
    const auto& operation = *args.instr.as<AttendBack>();
    const AttendDims dims = attend_dims(operation, args.inputs[0].shape, args.inputs[1].shape);
    const Shape& x = args.inputs[at(i)].shape;
    const Shape order = i == 0 ? dims.shared.plus(dims.rows) : dims.shared.plus({x.dim(operation.memory)});
    return {derivative_view(args.instr, args.outputs, i),
            order.plus({x.dim(i == 2 ? operation.value : operation.key)})};
  }

  // p = exp(score - largest) / total, ds = p (dy . v - dy . y). The total is relative to the largest score, which may be so
  // large that a sum of the two would lose the total.
  void row(std::int64_t s, std::int64_t r) {
    scores_.make(s, r);
    const std::int64_t i = s * scores_.rows + r, key = scores_.key, value = scores_.value;
    const double *y = y_.at(i * value), *dy = dy_.at(i * value), *q = scores_.q.at(i * key);
    double* dq = dq_.at(i * key);
    const double most = scores_.largest(), total = *total_.at(i);
    if (most == -INFINITY) return;
    double mean = 0;
    for (std::int64_t d = 0; d < value; ++d) mean += dy[d] * y[d];
    for (std::int64_t m = 0; m < scores_.end_of(s); ++m) {
      const std::int64_t j = s * scores_.memory + m;
      const double p = std::exp(scores_.of_row[at(m)] - most) / total;
      double dp = 0;
      for (std::int64_t d = 0; d < value; ++d) {
        dp += dy[d] * scores_.v.at(j * value)[d];
        dv_.at(j * value)[d] += p * dy[d];
      }
      if (dbias_) dbias_->at(s, r, m) += p * (dp - mean);
      const double ds = p * (dp - mean) * scores_.scale();
      for (std::int64_t d = 0; d < key; ++d) {
        dq[d] += ds * scores_.k.at(j * key)[d];
        dk_.at(j * key)[d] += ds * q[d];
      }
    }
  }

  Scores scores_;
  Packed y_, total_, dy_, dq_, dk_, dv_;
  std::optional<OfScores> dbias_;
};

Kernel attend(const KernelArgs& args) {
  const auto kernel = std::make_shared<AttendKernel>(args);
  return [kernel](const StepState&) { kernel->run(); };
}

Kernel attend_back(const KernelArgs& args) {
  const auto kernel = std::make_shared<AttendBackKernel>(args);
  return [kernel](const StepState&) { kernel->run(); };
}

const AddKernel kAttendKernel(kernels(), Attend::kName, attend);
const AddKernel kAttendBackKernel(kernels(), AttendBack::kName, attend_back);

}  // namespace

}  // namespace weft::reference
