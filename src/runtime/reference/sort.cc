// sort: the first of each line, in order.
#include <algorithm>
#include <numeric>

#include "runtime/reference/kernels.h"
#include "runtime/reference/lines.h"

namespace weft::reference {

namespace {

class SortKernel {
 public:
  explicit SortKernel(const KernelArgs& args)
      : x_(args.inputs[0]),
        given_(args.inputs.back()),
        has_given_(args.inputs.size() > 1),
        ascending_(args.instr.as<Sort>()->ascending),
        values_(args.outputs[0]),
        indices_(args.outputs[1]),
        lines_({x_, given_, values_, indices_}, args.instr.as<Sort>()->dim),
        order_(static_cast<std::size_t>(lines_.length())) {
    const std::size_t k = values_.shape.position(args.instr.as<Sort>()->k);
    count_ = values_.shape[k].size;
    value_step_ = values_.strides[k];
    index_step_ = indices_.strides[k];
    begin_ = x_.begin[x_.shape.position(args.instr.as<Sort>()->dim)];
  }

  void run() {
    visit_dtype(x_.dtype, [&]<class T>() {
      lines_.each([&](const std::int64_t* offsets) {
        const T* source = static_cast<const T*>(x_.data) + offsets[0];
        T* best = static_cast<T*>(values_.data) + offsets[2];
        auto* where = static_cast<std::int32_t*>(indices_.data) + offsets[3];
        order(source);
        for (std::int64_t j = 0; j < count_; ++j) {
          const std::int64_t e = order_[static_cast<std::size_t>(j)];
          best[j * value_step_] = source[e * lines_.step(0)];
          where[j * index_step_] = index_of(e, offsets[1]);
        }
      });
    });
  }

 private:
  // The first places of a line in order. Ties go to the lower place, so that the order is total and any sort is stable.
  // NaN counts as the largest: it is never lost.
  template <class T>
  void order(const T* source) {
    const std::int64_t step = lines_.step(0);
    std::iota(order_.begin(), order_.end(), 0);
    const auto is_before = [&](std::int64_t p, std::int64_t q) {
      const auto a = wide(source[p * step]), b = wide(source[q * step]);
      const bool a_nan = a != a, b_nan = b != b;
      if (a_nan != b_nan) return a_nan != ascending_;
      return a_nan || a == b ? p < q : (a > b) != ascending_;
    };
    if (count_ < lines_.length()) std::partial_sort(order_.begin(), order_.begin() + count_, order_.end(), is_before);
    else std::sort(order_.begin(), order_.end(), is_before);
  }

  std::int32_t index_of(std::int64_t e, std::int64_t given) const {
    if (!has_given_) return static_cast<std::int32_t>(begin_ + e);
    return static_cast<const std::int32_t*>(given_.data)[given + e * lines_.step(1)];
  }

  TensorView x_, given_;
  bool has_given_, ascending_;
  TensorView values_, indices_;
  Lines lines_;
  std::vector<std::int64_t> order_;
  std::int64_t count_ = 0, value_step_ = 0, index_step_ = 0, begin_ = 0;
};

}  // namespace

Kernel sort(const KernelArgs& args) {
  return [kernel = SortKernel(args)](const StepState&) mutable { kernel.run(); };
}

}  // namespace weft::reference
