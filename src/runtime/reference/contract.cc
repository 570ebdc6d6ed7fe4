// contract: out = sum over the dims absent from the output of x * y. Operands are packed into [batch, m, k] and
// [batch, k, n] in a wide type, multiplied row by row, and rounded once.
#include <algorithm>
#include <span>

#include "base/dispatch.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

// The elements of a view in the given dim order, one after another, as doubles or uint64.
template <class Wide>
class PackedOperand {
 public:
  PackedOperand(const TensorView& view, const Shape& order, const KernelArgs& args)
      : data(static_cast<Wide*>(args.workspace(static_cast<std::size_t>(order.elements()) * sizeof(Wide))),
             static_cast<std::size_t>(order.elements())),
        view_(view),
        length_(row_length(order)),
        step_(row_stride(strides_along(view, order))),
        rows_(order, {strides_along(view, order)}) {}

  void load() {
    each_element([](auto& element, Wide& number) {
      if constexpr (std::is_same_v<Wide, double>) number = to_double(element);
      else number = static_cast<Wide>(to_int64(element));
    });
  }
  void store() {
    each_element([]<class T>(T& element, Wide& number) {
      if constexpr (std::is_same_v<Wide, double>) element = from_double<T>(number);
      else element = from_int64<T>(static_cast<std::int64_t>(number));
    });
  }

  std::span<Wide> data;

 private:
  template <class Visit>
  void each_element(const Visit& visit) {
    std::size_t next = 0;
    visit_dtype(view_.dtype, [&]<class T>() {
      T* elements = static_cast<T*>(view_.data);
      rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
        for (std::int64_t i = 0; i < length_; ++i) visit(elements[offsets[0] + i * step_], data[next++]);
      });
    });
  }

  TensorView view_;
  std::int64_t length_, step_;
  Rows rows_;
};

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
  ContractKernel(const KernelArgs& args, const Roles& roles)
      : batch_(size(roles.batch)),
        m_(size(roles.m)),
        n_(size(roles.n)),
        k_(size(roles.k)),
        x_(args.inputs[0], roles.batch.plus(roles.m).plus(roles.k), args),
        y_(args.inputs[1], roles.batch.plus(roles.k).plus(roles.n), args),
        out_(args.outputs[0], roles.batch.plus(roles.m).plus(roles.n), args) {}

  void run() {
    x_.load();
    y_.load();
    std::fill(out_.data.begin(), out_.data.end(), Wide{0});
    for (std::size_t s = 0; s < batch_; ++s)
      for (std::size_t i = 0; i < m_; ++i) {
        Wide* row = out_.data.data() + (s * m_ + i) * n_;
        for (std::size_t p = 0; p < k_; ++p) {
          const Wide factor = x_.data[(s * m_ + i) * k_ + p];
          const Wide* other = y_.data.data() + (s * k_ + p) * n_;
          for (std::size_t j = 0; j < n_; ++j) row[j] += factor * other[j];
        }
      }
    out_.store();
  }

 private:
  static std::size_t size(const Shape& shape) { return static_cast<std::size_t>(shape.elements()); }

  std::size_t batch_, m_, n_, k_;
  PackedOperand<Wide> x_, y_, out_;
};

template <class Wide>
Kernel make(const KernelArgs& args) {
  const Roles roles(args.inputs[0].shape, args.inputs[1].shape, args.outputs[0].shape);
  return [kernel = ContractKernel<Wide>(args, roles)](const StepState&) mutable { kernel.run(); };
}

Kernel contract(const KernelArgs& args) {
  return is_float(args.outputs[0].dtype) ? make<double>(args) : make<std::uint64_t>(args);
}

const AddKernel kContractKernel(kernels(), Contract::kName, contract, wide_bytes);

}  // namespace

}  // namespace weft::reference
