// reduce, scan, top_k: joining, running over and picking from dims.
#include <algorithm>
#include <numeric>

#include "base/dispatch.h"
#include "runtime/reference/kernels.h"

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
auto wide(T x) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>) return to_int64(x);
  else return to_double(x);
}
template <class T, class Wide>
T narrow(Wide x) {
  if constexpr (std::is_same_v<Wide, double>) return from_double<T>(x);
  else return from_int64<T>(x);
}
template <class T>
auto start(const Joined& join) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, Bool>) return join.template start_i<T>();
  else return join.start_f();
}

void run_reduce(const TensorView& x, const TensorView& out, Reduce how) {
  const Shape inner = x.shape.minus(out.shape);
  const Joined join{how};
  visit_dtype(x.dtype, [&]<class T>() {
    const T* source = static_cast<const T*>(x.data);
    T* target = static_cast<T*>(out.data);
    const auto x_outer = strides_along(x, out.shape), x_inner = strides_along(x, inner);
    const std::int64_t row = row_length(out.shape), x_step = row_stride(x_outer), out_step = row_stride(out.strides);
    const std::int64_t length = row_length(inner), inner_step = row_stride(x_inner);
    Rows inner_rows(inner, {x_inner});
    for_each_row(out.shape, {x_outer, out.strides}, [&](const std::int64_t* outer, const std::int64_t*) {
      for (std::int64_t i = 0; i < row; ++i) {
        auto sum = start<T>(join);
        inner_rows.each([&](const std::int64_t* offsets, const std::int64_t*) {
          const T* first = source + outer[0] + i * x_step + offsets[0];
          for (std::int64_t k = 0; k < length; ++k) sum = join(sum, wide(first[k * inner_step]));
        });
        target[outer[1] + i * out_step] = narrow<T>(sum);
      }
    });
  });
}

// `x` and `out` without `dim`: what one run along the dim starts from.
struct Lines {
  Shape rest;
  std::int64_t length = 0, x_step = 0, out_step = 0;
  std::vector<std::int64_t> x_strides, out_strides;
  Lines(const TensorView& x, const TensorView& out, const std::string& dim)
      : rest(x.shape.minus({x.shape.dim(dim)})),
        length(x.shape.size_of(dim)),
        x_step(x.strides[x.shape.position(dim)]),
        x_strides(strides_along(x, rest)),
        out_strides(strides_along(out, rest)) {}
};

void run_scan(const TensorView& x, const TensorView& out, const Scan& work) {
  Lines lines(x, out, work.dim);
  lines.out_step = out.strides[out.shape.position(work.dim)];
  const Joined join{work.how};
  const std::int64_t row = row_length(lines.rest), x_row = row_stride(lines.x_strides),
                     out_row = row_stride(lines.out_strides);
  visit_dtype(x.dtype, [&]<class T>() {
    for_each_row(lines.rest, {lines.x_strides, lines.out_strides},
                 [&](const std::int64_t* offsets, const std::int64_t*) {
                   for (std::int64_t i = 0; i < row; ++i) {
                     const T* source = static_cast<const T*>(x.data) + offsets[0] + i * x_row;
                     T* target = static_cast<T*>(out.data) + offsets[1] + i * out_row;
                     auto sum = start<T>(join);
                     for (std::int64_t k = 0; k < lines.length; ++k) {
                       const std::int64_t e = work.reverse ? lines.length - 1 - k : k;
                       if (work.exclusive) target[e * lines.out_step] = narrow<T>(sum);
                       sum = join(sum, wide(source[e * lines.x_step]));
                       if (!work.exclusive) target[e * lines.out_step] = narrow<T>(sum);
                     }
                   }
                 });
  });
}

void run_top_k(const std::vector<TensorView>& in, const TensorView& values, const TensorView& indices,
               const TopK& work) {
  const TensorView& x = in[0];
  const Lines lines(x, values, work.dim);
  const std::size_t k_at = values.shape.position(work.k), dim_at = x.shape.position(work.dim);
  const auto count = static_cast<std::size_t>(values.shape[k_at].size);
  const std::vector<std::int64_t> index_strides = strides_along(indices, lines.rest);
  const std::vector<std::int64_t> given = in.size() > 1 ? strides_along(in[1], lines.rest) : lines.x_strides;
  std::vector<std::int64_t> order(static_cast<std::size_t>(lines.length));
  const std::int64_t row = row_length(lines.rest);
  visit_dtype(x.dtype, [&]<class T>() {
    for_each_row(
        lines.rest, {lines.x_strides, lines.out_strides, index_strides, given},
        [&](const std::int64_t* offsets, const std::int64_t*) {
          for (std::int64_t i = 0; i < row; ++i) {
            const T* source = static_cast<const T*>(x.data) + offsets[0] + i * row_stride(lines.x_strides);
            T* best = static_cast<T*>(values.data) + offsets[1] + i * row_stride(lines.out_strides);
            auto* where = static_cast<std::int32_t*>(indices.data) + offsets[2] + i * row_stride(index_strides);
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t p, std::int64_t q) {
              const auto a = wide(source[p * lines.x_step]), b = wide(source[q * lines.x_step]);
              return b == b &&
                     (a != a || a > b);  // NaN counts as the largest: it is never lost, and the order is total
            });
            for (std::size_t j = 0; j < count; ++j) {
              const std::int64_t e = order[j];
              best[static_cast<std::int64_t>(j) * values.strides[k_at]] = source[e * lines.x_step];
              std::int32_t index = static_cast<std::int32_t>(x.begin[dim_at] + e);
              if (in.size() > 1)
                index = static_cast<const std::int32_t*>(
                    in[1].data)[offsets[3] + i * row_stride(given) + e * in[1].strides[in[1].shape.position(work.dim)]];
              where[static_cast<std::int64_t>(j) * indices.strides[k_at]] = index;
            }
          }
        });
  });
}

}  // namespace

Kernel reduce(const KernelArgs& args) {
  return [x = args.inputs[0], out = args.outputs[0], how = args.instr.as<ReduceDims>()->how](const StepState&) {
    run_reduce(x, out, how);
  };
}

Kernel scan(const KernelArgs& args) {
  return [x = args.inputs[0], out = args.outputs[0], work = *args.instr.as<Scan>()](const StepState&) {
    run_scan(x, out, work);
  };
}

Kernel top_k(const KernelArgs& args) {
  return [in = args.inputs, values = args.outputs[0], indices = args.outputs[1],
          work = *args.instr.as<TopK>()](const StepState&) { run_top_k(in, values, indices, work); };
}

}  // namespace weft::reference
