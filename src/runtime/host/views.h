// Parts of views, and reading indices.
#pragma once

#include <string>

#include "base/dispatch.h"
#include "runtime/host/kernel.h"

namespace weft {

// The run of `size` elements from `begin` on along a dim of a view.
inline TensorView run_of(TensorView view, const std::string& dim, std::int64_t begin, std::int64_t size) {
  const std::size_t d = view.shape.position(dim);
  view.data =
      static_cast<std::byte*>(view.data) + begin * view.strides[d] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape = view.shape.resized(dim, size);
  if (!view.begin.empty()) view.begin[d] += begin;
  return view;
}

// The view at index 0 of a dim.
inline TensorView without_dim(TensorView view, const std::string& dim) {
  const auto d = static_cast<std::ptrdiff_t>(view.shape.position(dim));
  view.shape = view.shape.minus({view.shape.dim(dim)});
  view.strides.erase(view.strides.begin() + d);
  if (!view.begin.empty()) view.begin.erase(view.begin.begin() + d);
  if (!view.whole.empty()) view.whole.erase(view.whole.begin() + d);
  return view;
}

inline std::int64_t integer_at(const TensorView& view, std::int64_t offset) {
  return visit_dtype(view.dtype, [&]<class T>() { return to_int64(static_cast<const T*>(view.data)[offset]); });
}

// index - start; -1, which is outside of every shard, for an index below it, however far.
inline std::int64_t from_start(std::int64_t index, std::int64_t start) { return index < start ? -1 : index - start; }

}  // namespace weft
