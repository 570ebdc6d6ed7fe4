#include "runtime/host/strided.h"

#include "base/dispatch.h"
#include "language/shape_math.h"

namespace weft {

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

ElementCopy::ElementCopy(const TensorView& from, const TensorView& to)
    : from_(from.data),
      to_(to.data),
      dtype_(to.dtype),
      in_place_(from.data == to.data && from.shape == to.shape && from.strides == to.strides),
      length_(row_length(to.shape)),
      from_step_(row_stride(strides_along(from, to.shape))),
      to_step_(row_stride(to.strides)),
      rows_(to.shape, {strides_along(from, to.shape), to.strides}) {
  internal_check(from.dtype == to.dtype, "a copy between dtypes");
}

void ElementCopy::run(std::int64_t offset) {
  if (in_place_ && offset == 0) return;
  visit_dtype(dtype_, [&]<class T>() {
    const T* source = static_cast<const T*>(from_) + offset;
    T* target = static_cast<T*>(to_);
    rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
      for (std::int64_t i = 0; i < length_; ++i)
        target[offsets[1] + i * to_step_] = source[offsets[0] + i * from_step_];
    });
  });
}

void copy_elements(const TensorView& from, const TensorView& to) { ElementCopy(from, to).run(); }

TensorView dense_view(void* data, DType dtype, const Shape& shape) {
  TensorView view{data, dtype, shape, dense_strides(shape), std::vector<std::int64_t>(shape.rank(), 0), {}};
  for (const Dim& dim : shape) view.whole.push_back(dim.size);
  return view;
}

TensorView unplaced_view(const Program& program, ValueId id, const ByValue<std::vector<std::int64_t>>& strides) {
  const Value& value = program.values[id];
  return {nullptr, value.dtype, value.shape, strides[id], {}, {}};
}

}  // namespace weft
