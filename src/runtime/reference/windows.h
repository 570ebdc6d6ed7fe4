// The common part of convolve and pool: operands in a wide type with their window dims first, and the walk over all
// that meets. Everything is sized when the kernel is bound.
#pragma once

#include <vector>

#include "base/dispatch.h"
#include "runtime/host/strided.h"

namespace weft::reference {

// The numbers of a view in doubles, dense in the given dim order (some order of the view's own dims).
class Packed {
 public:
  Packed(const TensorView& view, const Shape& order)
      : view_(view),
        step_(row_stride(strides_along(view, order))),
        length_(row_length(order)),
        rows_(order, {strides_along(view, order)}),
        numbers_(static_cast<std::size_t>(order.elements())) {}

  double* at(std::int64_t offset) { return numbers_.data() + offset; }
  void fill(double number) { numbers_.assign(numbers_.size(), number); }

  void read() {
    visit_dtype(view_.dtype, [&]<class T>() {
      const T* source = static_cast<const T*>(view_.data);
      double* next = numbers_.data();
      rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
        for (std::int64_t i = 0; i < length_; ++i) *next++ = to_double(source[offsets[0] + i * step_]);
      });
    });
  }
  void write() {
    visit_dtype(view_.dtype, [&]<class T>() {
      T* target = static_cast<T*>(view_.data);
      const double* next = numbers_.data();
      rows_.each([&](const std::int64_t* offsets, const std::int64_t*) {
        for (std::int64_t i = 0; i < length_; ++i) target[offsets[0] + i * step_] = from_double<T>(*next++);
      });
    });
  }

 private:
  TensorView view_;
  std::int64_t step_, length_;
  Rows rows_;
  std::vector<double> numbers_;
};

// All (element of x, place of y, tap) that meet, as row-major numbers over the window dims.
class WindowWalk {
 public:
  WindowWalk(const std::vector<WindowDim>& windows, const Shape& x, const Shape& y) : windows_(windows) {
    for (const WindowDim& w : windows) {
      elements_.push_back(x.size_of(w.dim));
      places_.push_back(y.size_of(w.dim));
    }
  }

  template <class Meet>
  void each(const Meet& meet) const {
    walk(0, 0, 0, 0, meet);
  }

 private:
  template <class Meet>
  void walk(std::size_t d, std::int64_t x, std::int64_t y, std::int64_t tap, const Meet& meet) const {
    if (d == windows_.size()) return meet(x, y, tap);
    const WindowDim& w = windows_[d];
    for (std::int64_t o = 0; o < places_[d]; ++o)
      for (std::int64_t k = 0; k < w.size; ++k) {
        const std::int64_t i = o * w.stride + k * w.dilation - w.before;
        if (i >= 0 && i < elements_[d]) walk(d + 1, x * elements_[d] + i, y * places_[d] + o, tap * w.size + k, meet);
      }
  }

  std::vector<WindowDim> windows_;
  std::vector<std::int64_t> elements_, places_;
};

// The dims of `shape` that windows walk along, in their order, then `rest`.
inline Shape windows_first(const std::vector<WindowDim>& windows, const Shape& shape, const Shape& rest) {
  std::vector<Dim> dims;
  for (const WindowDim& w : windows) dims.push_back(shape.dim(shape.has(w.dim) ? w.dim : w.filter));
  return Shape(std::move(dims)).plus(rest);
}

}  // namespace weft::reference
