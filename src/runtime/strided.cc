#include "runtime/strided.h"

#include "base/dispatch.h"

namespace weft {

void copy_elements(const TensorView& from, const TensorView& to) {
  internal_check(from.dtype == to.dtype, "a copy between dtypes");
  if (from.data == to.data && from.shape == to.shape && from.strides == to.strides) return;  // in place already
  const std::vector<std::int64_t> from_strides = strides_along(from, to.shape);
  const std::int64_t length = row_length(to.shape), from_step = row_stride(from_strides),
                     to_step = row_stride(to.strides);
  visit_dtype(to.dtype, [&]<class T>() {
    const T* source = static_cast<const T*>(from.data);
    T* target = static_cast<T*>(to.data);
    for_each_row(to.shape, {from_strides, to.strides}, [&](const std::int64_t* offsets, const std::int64_t*) {
      for (std::int64_t i = 0; i < length; ++i) target[offsets[1] + i * to_step] = source[offsets[0] + i * from_step];
    });
  });
}

TensorView dense_view(void* data, DType dtype, const Shape& shape) {
  TensorView view{data, dtype, shape, dense_strides(shape), std::vector<std::int64_t>(shape.rank(), 0), {}};
  for (const Dim& dim : shape) view.whole.push_back(dim.size);
  return view;
}

}  // namespace weft
