// reduce, scan: joining dims and running over them.
#include <algorithm>
#include <limits>

#include "runtime/reference/kernels.h"
#include "runtime/reference/lines.h"

namespace weft::reference {

namespace {

// Floats are joined in double, integers and bools in int64.
struct Joined {
  Reduce how;
  double start_f() const {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    return how == Reduce::kSum ? 0 : how == Reduce::kProduct ? 1 : how == Reduce::kMax ? -kInf : kInf;
  }
  template <class T>  // an integer type or Bool
  std::int64_t start_i() const {
    if (how == Reduce::kSum) return 0;
    if (how == Reduce::kProduct) return 1;
    if constexpr (std::is_same_v<T, Bool>) return how == Reduce::kMax ? 0 : 1;
    else return how == Reduce::kMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  }
  double operator()(double x, double y) const {
    switch (how) {
      case Reduce::kSum: return x + y;
      case Reduce::kProduct: return x * y;
      case Reduce::kMax: return x != x ? x : y != y ? y : std::max(x, y);
      default: return x != x ? x : y != y ? y : std::min(x, y);
    }
  }
  std::int64_t operator()(std::int64_t x, std::int64_t y) const {
    using U = std::uint64_t;
    switch (how) {
      case Reduce::kSum: return static_cast<std::int64_t>(static_cast<U>(x) + static_cast<U>(y));
      case Reduce::kProduct: return static_cast<std::int64_t>(static_cast<U>(x) * static_cast<U>(y));
      case Reduce::kMax: return std::max(x, y);
      default: return std::min(x, y);
    }
  }
};

template <class T>
auto start(const Joined& join) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>) return join.template start_i<T>();
  else return join.start_f();
}

class ReduceKernel {
 public:
  ReduceKernel(const TensorView& x, const TensorView& out, Reduce how)
      : ReduceKernel(x, out, x.shape.minus(out.shape), how) {}

  void run() {
    visit_dtype(x_.dtype, [&]<class T>() {
      const T* source = static_cast<const T*>(x_.data);
      T* target = static_cast<T*>(out_.data);
      outer_rows_.each([&](const std::int64_t* outer, const std::int64_t*) {
        for (std::int64_t i = 0; i < length_; ++i)
          target[outer[1] + i * out_step_] = joined(source + outer[0] + i * x_step_);
      });
    });
  }

 private:
  ReduceKernel(const TensorView& x, const TensorView& out, const Shape& inner, Reduce how)
      : x_(x),
        out_(out),
        join_{how},
        length_(row_length(out.shape)),
        inner_length_(row_length(inner)),
        x_step_(row_stride(strides_along(x, out.shape))),
        out_step_(row_stride(out.strides)),
        inner_step_(row_stride(strides_along(x, inner))),
        outer_rows_(out.shape, {strides_along(x, out.shape), out.strides}),
        inner_rows_(inner, {strides_along(x, inner)}) {}

  template <class T>
  T joined(const T* source) {
    auto sum = start<T>(join_);
    inner_rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
      for (std::int64_t k = 0; k < inner_length_; ++k) sum = join_(sum, wide(source[offsets[0] + k * inner_step_]));
    });
    return narrow<T>(sum);
  }

  TensorView x_, out_;
  Joined join_;
  std::int64_t length_, inner_length_, x_step_, out_step_, inner_step_;
  Rows outer_rows_, inner_rows_;
};

class ScanKernel {
 public:
  ScanKernel(const TensorView& x, const TensorView& out, const Scan& operation)
      : x_(x), out_(out), operation_(operation), join_{operation.how}, lines_({x, out}, operation.dim) {}

  void run() {
    visit_dtype(x_.dtype, [&]<class T>() {
      lines_.each([&](const std::int64_t* offsets) {
        const T* source = static_cast<const T*>(x_.data) + offsets[0];
        T* target = static_cast<T*>(out_.data) + offsets[1];
        const std::int64_t x_step = lines_.step(0), out_step = lines_.step(1);
        auto sum = start<T>(join_);
        for (std::int64_t k = 0; k < lines_.length(); ++k) {
          const std::int64_t e = operation_.reverse ? lines_.length() - 1 - k : k;
          if (operation_.exclusive) target[e * out_step] = narrow<T>(sum);
          sum = join_(sum, wide(source[e * x_step]));
          if (!operation_.exclusive) target[e * out_step] = narrow<T>(sum);
        }
      });
    });
  }

 private:
  TensorView x_, out_;
  Scan operation_;
  Joined join_;
  Lines lines_;
};

Kernel reduce(const KernelArgs& args) {
  return [kernel = ReduceKernel(args.inputs[0], args.outputs[0], args.instr.as<ReduceDims>()->how)](
             const StepState&) mutable { kernel.run(); };
}

Kernel scan(const KernelArgs& args) {
  return [kernel = ScanKernel(args.inputs[0], args.outputs[0], *args.instr.as<Scan>())](const StepState&) mutable {
    kernel.run();
  };
}

const AddKernel kReduceDimsKernel(kernels(), ReduceDims::kName, reduce);
const AddKernel kScanKernel(kernels(), Scan::kName, scan);

}  // namespace

}  // namespace weft::reference
