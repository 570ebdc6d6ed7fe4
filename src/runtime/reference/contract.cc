// contract: out = sum over the dims absent from the output of x * y. Operands are packed into [batch, m, k] and
// [batch, k, n] in a wide type, multiplied row by row, and rounded once.
#include <memory>

#include "base/dispatch.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

// Numbers of a view in the given dim order, as doubles or int64.
template <class Wide>
void pack(const TensorView& view, const Shape& order, std::vector<Wide>& packed) {
  packed.resize(static_cast<std::size_t>(order.elements()));
  const std::vector<std::int64_t> strides = strides_along(view, order);
  const std::int64_t length = row_length(order), step = row_stride(strides);
  std::size_t next = 0;
  visit_dtype(view.dtype, [&]<class T>() {
    const T* data = static_cast<const T*>(view.data);
    for_each_row(order, {strides}, [&](const std::int64_t* offsets, const std::int64_t*) {
      for (std::int64_t i = 0; i < length; ++i) {
        if constexpr (std::is_same_v<Wide, double>) packed[next++] = to_double(data[offsets[0] + i * step]);
        else packed[next++] = static_cast<Wide>(to_int64(data[offsets[0] + i * step]));
      }
    });
  });
}

template <class Wide>
void unpack(const std::vector<Wide>& packed, const Shape& order, const TensorView& view) {
  const std::vector<std::int64_t> strides = strides_along(view, order);
  const std::int64_t length = row_length(order), step = row_stride(strides);
  std::size_t next = 0;
  visit_dtype(view.dtype, [&]<class T>() {
    T* data = static_cast<T*>(view.data);
    for_each_row(order, {strides}, [&](const std::int64_t* offsets, const std::int64_t*) {
      for (std::int64_t i = 0; i < length; ++i) {
        if constexpr (std::is_same_v<Wide, double>) data[offsets[0] + i * step] = from_double<T>(packed[next++]);
        else data[offsets[0] + i * step] = from_int64<T>(static_cast<std::int64_t>(packed[next++]));
      }
    });
  });
}

// The dims by role: in both and the output = batch, in x and the output = m, in y and the output = n, summed = k.
struct Roles {
  Shape batch, m, n, k;
  Roles(const Shape& x, const Shape& y, const Shape& out) {
    for (const Dim& dim : out) {
      const bool in_x = x.has(dim.name), in_y = y.has(dim.name);
      Shape& role = in_x && in_y ? batch : in_x ? m : n;
      role = role.plus({dim});
    }
    for (const Dim& dim : x)
      if (!out.has(dim.name)) k = k.plus({dim});
  }
};

template <class Wide>
class ContractKernel {
 public:
  explicit ContractKernel(const KernelArgs& args)
      : x_(args.inputs[0]), y_(args.inputs[1]), out_(args.outputs[0]), roles_(x_.shape, y_.shape, out_.shape) {}

  void run() {
    pack(x_, roles_.batch.plus(roles_.m).plus(roles_.k), a_);
    pack(y_, roles_.batch.plus(roles_.k).plus(roles_.n), b_);
    const auto batch = size(roles_.batch), m = size(roles_.m), n = size(roles_.n), k = size(roles_.k);
    c_.assign(batch * m * n, 0);
    for (std::size_t s = 0; s < batch; ++s)
      for (std::size_t i = 0; i < m; ++i) {
        Wide* row = c_.data() + (s * m + i) * n;
        for (std::size_t p = 0; p < k; ++p) {
          const Wide factor = a_[(s * m + i) * k + p];
          const Wide* other = b_.data() + (s * k + p) * n;
          for (std::size_t j = 0; j < n; ++j) row[j] += factor * other[j];
        }
      }
    unpack(c_, roles_.batch.plus(roles_.m).plus(roles_.n), out_);
  }

 private:
  static std::size_t size(const Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

  TensorView x_, y_, out_;
  Roles roles_;
  std::vector<Wide> a_, b_, c_;
};

}  // namespace

Kernel contract(const KernelArgs& args) {
  if (is_float(args.outputs[0].dtype))
    return [kernel = std::make_shared<ContractKernel<double>>(args)](const StepState&) { kernel->run(); };
  return [kernel = std::make_shared<ContractKernel<std::uint64_t>>(args)](const StepState&) { kernel->run(); };
}

}  // namespace weft::reference
