#include "runtime/cpu/convolution_form.h"

#include <algorithm>

#include "runtime/host/strided.h"

namespace weft::cpu {

namespace {

struct DimPair {
  std::int64_t size = 1, a = 0, b = 0;  // strides in two values
};

// Inner after outer as one; none if either value has them apart.
std::optional<DimPair> joined(const DimPair& outer, const DimPair& inner) {
  if (outer.size == 1) return inner;
  if (inner.size == 1) return outer;
  if (outer.a != inner.size * inner.a || outer.b != inner.size * inner.b) return {};
  return DimPair{outer.size * inner.size, inner.a, inner.b};
}

// These dims, which both values have, as one.
std::optional<DimPair> joined(const std::vector<Dim>& dims, const TensorView& a, const TensorView& b) {
  std::vector<DimPair> all;
  for (const Dim& dim : dims)
    all.push_back({dim.size, a.strides[a.shape.position(dim.name)], b.strides[b.shape.position(dim.name)]});
  std::ranges::stable_sort(all, std::greater<>(), &DimPair::a);
  std::optional<DimPair> one = DimPair{};
  for (const DimPair& next : all)
    if (one) one = joined(*one, next);
  return one;
}

// The stride of (groups, channels) as one dim; none if they lie apart.
std::optional<std::int64_t> channel_stride(std::int64_t groups, std::int64_t group_stride, std::int64_t channels,
                                           std::int64_t stride) {
  const auto one = joined(DimPair{groups, group_stride, group_stride}, DimPair{channels, stride, stride});
  if (!one) return {};
  return one->a;
}

// Dims that no window walks along, by who has them.
struct Roles {
  std::vector<Dim> groups, batch, in, out;
  Roles(const std::vector<WindowDim>& windows, const Shape& x, const Shape& y, const Shape& filter) {
    for (const Dim& dim : x.plus(filter)) {
      const auto walks = [&](const WindowDim& w) { return w.dim == dim.name || w.filter == dim.name; };
      if (std::ranges::any_of(windows, walks)) continue;
      (!filter.has(dim.name) ? batch : !x.has(dim.name) ? out : !y.has(dim.name) ? in : groups).push_back(dim);
    }
  }
};

std::int64_t stride_of(const TensorView& view, const std::string& dim) {
  return view.strides[view.shape.position(dim)];
}

// The window without the elements that it leaves out at either end; false if some place would meet padding alone.
bool add_window(const WindowDim& w, const TensorView& x, const TensorView& y, const TensorView& filter,
                ConvolutionForm& form) {
  ConvolutionDim dim{.elements = x.shape.size_of(w.dim),
                     .places = y.shape.size_of(w.dim),
                     .taps = w.size,
                     .stride = w.stride,
                     .dilation = w.dilation,
                     .before = w.before,
                     .x = stride_of(x, w.dim),
                     .y = stride_of(y, w.dim),
                     .filter = stride_of(filter, w.filter)};
  if (dim.before < 0) {
    form.x_offset -= dim.before * dim.x;
    dim.elements += dim.before;
    dim.before = 0;
    form.leaves_out = true;
  }
  if (dim.after() <= -dim.stride) {
    dim.elements += dim.after();
    form.leaves_out = true;
  }
  if (dim.elements < 1 || dim.before >= dim.reach() || dim.after() >= dim.reach()) return false;
  form.shape.space.push_back(dim);
  return true;
}

bool has_numbers(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16; }

}  // namespace

std::optional<ConvolutionForm> convolution_form(const Convolve& operation, const TensorView& x, const TensorView& y,
                                                const TensorView& filter) {
  if (!has_numbers(x.dtype) || !has_numbers(y.dtype) || !has_numbers(filter.dtype)) return {};
  if (operation.windows.empty() || operation.windows.size() > 3) return {};
  const Roles roles(operation.windows, x.shape, y.shape, filter.shape);
  const auto batch = joined(roles.batch, x, y), in = joined(roles.in, x, filter), out = joined(roles.out, filter, y),
             of_x = joined(roles.groups, x, filter), of_y = joined(roles.groups, filter, y);
  if (!batch || !in || !out || !of_x || !of_y) return {};
  const auto x_channel = channel_stride(of_x->size, of_x->a, in->size, in->a),
             y_channel = channel_stride(of_y->size, of_y->b, out->size, out->b);
  if (!x_channel || !y_channel) return {};
  ConvolutionForm form;
  for (const WindowDim& w : operation.windows)
    if (!add_window(w, x, y, filter, form)) return {};
  std::ranges::stable_sort(form.shape.space, std::greater<>(), &ConvolutionDim::x);
  ConvolutionShape& s = form.shape;
  s.direction = operation.direction;
  s.batch = batch->size, s.groups = of_x->size, s.in = in->size, s.out = out->size;
  s.x_batch = batch->a, s.y_batch = batch->b, s.x_channel = *x_channel, s.y_channel = *y_channel;
  s.filter_group = of_x->b, s.filter_in = in->b, s.filter_out = out->a;
  s.x = x.dtype, s.y = y.dtype, s.filter = filter.dtype;
  return form;
}

}  // namespace weft::cpu
