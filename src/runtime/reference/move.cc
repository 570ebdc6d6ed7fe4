// copy, concat, take, put, gather, scatter_add: moving elements.
#include <algorithm>
#include <cstring>

#include "base/dispatch.h"
#include "runtime/reference/kernels.h"

namespace weft::reference {

namespace {

// The run of `size` elements from `begin` on along a dim of a view.
TensorView run_of(TensorView view, const std::string& dim, std::int64_t begin, std::int64_t size) {
  const std::size_t d = view.shape.position(dim);
  view.data =
      static_cast<std::byte*>(view.data) + begin * view.strides[d] * static_cast<std::int64_t>(size_of(view.dtype));
  view.shape = view.shape.resized(dim, size);
  return view;
}

std::int64_t integer_at(const TensorView& view, std::int64_t offset) {
  return visit_dtype(view.dtype, [&]<class T>() { return to_int64(static_cast<const T*>(view.data)[offset]); });
}

// index - start; -1, which is outside of every shard, for an index below it, however far.
std::int64_t from_start(std::int64_t index, std::int64_t start) { return index < start ? -1 : index - start; }

}  // namespace

Kernel copy(const KernelArgs& args) {
  return [from = args.inputs[0], to = args.outputs[0]](const StepState&) { copy_elements(from, to); };
}

Kernel concat(const KernelArgs& args) {
  std::vector<std::pair<TensorView, TensorView>> moves;
  const std::string& dim = args.instr.as<Concat>()->dim;
  std::int64_t begin = 0;
  for (const TensorView& input : args.inputs) {
    const std::int64_t size = input.shape.size_of(dim);
    moves.emplace_back(input, run_of(args.outputs[0], dim, begin, size));
    begin += size;
  }
  return [moves](const StepState&) {
    for (const auto& [from, to] : moves) copy_elements(from, to);
  };
}

Kernel take(const KernelArgs& args) {
  return [x = args.inputs[0], offset = args.inputs[1], out = args.outputs[0],
          dim = args.instr.as<Take>()->dim](const StepState&) {
    const std::int64_t size = out.shape.size_of(dim), most = x.shape.size_of(dim) - size;
    copy_elements(run_of(x, dim, std::clamp<std::int64_t>(integer_at(offset, 0), 0, most), size), out);
  };
}

Kernel put(const KernelArgs& args) {
  return [x = args.inputs[0], piece = args.inputs[1], offset = args.inputs[2], out = args.outputs[0],
          dim = args.instr.as<Put>()->dim](const StepState&) {
    copy_elements(x, out);
    const std::int64_t whole = out.shape.size_of(dim), size = piece.shape.size_of(dim);
    const std::int64_t at = std::clamp(integer_at(offset, 0), -size, whole);
    const std::int64_t first = std::max<std::int64_t>(0, -at), last = std::min(size, whole - at);
    if (first < last)
      copy_elements(run_of(piece, dim, first, last - first), run_of(out, dim, at + first, last - first));
  };
}

// For every element of the output: x at (index - start), or zero outside the shard.
Kernel gather(const KernelArgs& args) {
  return [x = args.inputs[0], indices = args.inputs[1], out = args.outputs[0],
          dim = args.instr.as<Gather>()->dim](const StepState&) {
    const std::size_t d = x.shape.position(dim);
    TensorView rest = x;  // x without the dim: where the row at index 0 starts
    rest.shape = x.shape.minus({x.shape[d]});
    rest.strides.erase(rest.strides.begin() + static_cast<std::ptrdiff_t>(d));
    const auto x_strides = strides_along(rest, out.shape), index_strides = strides_along(indices, out.shape);
    const std::int64_t length = row_length(out.shape);
    visit_dtype(out.dtype, [&]<class T>() {
      const T* source = static_cast<const T*>(x.data);
      T* target = static_cast<T*>(out.data);
      for_each_row(out.shape, {x_strides, index_strides, out.strides}, [&](const std::int64_t* o, const std::int64_t*) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t index = from_start(integer_at(indices, o[1] + i * row_stride(index_strides)), x.begin[d]);
          const bool here = index >= 0 && index < x.shape[d].size;
          target[o[2] + i * row_stride(out.strides)] =
              here ? source[o[0] + i * row_stride(x_strides) + index * x.strides[d]] : T{};
        }
      });
    });
  };
}

namespace {

// Adds every update at its index; sums are kept wide and rounded once.
template <class T, class Wide>
void scatter(const TensorView& indices, const TensorView& updates, const TensorView& out, std::size_t d,
             std::vector<Wide>& sums) {
  sums.assign(static_cast<std::size_t>(out.shape.elements()), 0);
  TensorView rest = dense_view(nullptr, out.dtype, out.shape);
  const std::int64_t dim_stride = rest.strides[d];
  rest.shape = out.shape.minus({out.shape[d]});
  rest.strides.erase(rest.strides.begin() + static_cast<std::ptrdiff_t>(d));
  const Shape every = updates.shape.plus(indices.shape);  // an update is repeated along dims that only the indices have
  const auto out_strides = strides_along(rest, every), index_strides = strides_along(indices, every);
  const auto update_strides = strides_along(updates, every);
  const T* source = static_cast<const T*>(updates.data);
  const std::int64_t length = row_length(every);
  for_each_row(every, {update_strides, index_strides, out_strides}, [&](const std::int64_t* o, const std::int64_t*) {
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t index = from_start(integer_at(indices, o[1] + i * row_stride(index_strides)), out.begin[d]);
      if (index < 0 || index >= out.shape[d].size) continue;
      Wide& sum = sums[static_cast<std::size_t>(o[2] + i * row_stride(out_strides) + index * dim_stride)];
      const T update = source[o[0] + i * row_stride(update_strides)];
      if constexpr (std::is_same_v<Wide, double>) sum += to_double(update);
      else sum += static_cast<Wide>(to_int64(update));
    }
  });
  T* target = static_cast<T*>(out.data);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if constexpr (std::is_same_v<Wide, double>) target[i] = from_double<T>(sums[i]);
    else target[i] = from_int64<T>(static_cast<std::int64_t>(sums[i]));
  }
}

}  // namespace

Kernel scatter_add(const KernelArgs& args) {
  return [indices = args.inputs[0], updates = args.inputs[1], out = args.outputs[0],
          d = args.outputs[0].shape.position(args.instr.as<ScatterAdd>()->dim), floats = std::vector<double>(),
          integers = std::vector<std::uint64_t>()](const StepState&) mutable {
    visit_dtype(out.dtype, [&]<class T>() {
      if (is_float(out.dtype)) scatter<T>(indices, updates, out, d, floats);
      else scatter<T>(indices, updates, out, d, integers);
    });
  };
}

}  // namespace weft::reference
