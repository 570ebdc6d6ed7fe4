// Walking over the lines of some values along one dim, and the wide types that kernels join elements in.
#pragma once

#include <string>
#include <vector>

#include "base/dispatch.h"
#include "runtime/host/strided.h"

namespace weft::reference {

// Floats as doubles, integers and bools as int64.
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

// The lines along `dim` of values that agree in all other dims. Walking allocates nothing.
class Lines {
 public:
  // A value may lack the dim, or have another in its place: then it has one line start, and step() is not for it.
  Lines(const std::vector<TensorView>& values, const std::string& dim)
      : Lines(values, dim, values[0].shape.minus({values[0].shape.dim(dim)})) {}

  // Calls line(offsets): offsets[k] is where the line starts in value k.
  template <class Line>
  void each(const Line& line) {
    rows_.each([&](const std::int64_t* starts, const std::int64_t*) {
      std::copy_n(starts, offsets_.size(), offsets_.begin());
      for (std::int64_t i = 0; i < row_; ++i) {
        line(offsets_.data());
        for (std::size_t k = 0; k < offsets_.size(); ++k) offsets_[k] += row_steps_[k];
      }
    });
  }

  std::int64_t length() const { return length_; }
  std::int64_t step(std::size_t k) const { return steps_[k]; }

 private:
  Lines(const std::vector<TensorView>& values, const std::string& dim, const Shape& rest)
      : length_(values[0].shape.size_of(dim)), row_(row_length(rest)), rows_(rest, strides_of(values, rest)) {
    for (const TensorView& value : values) {
      const auto at = value.shape.find(dim);
      steps_.push_back(at ? value.strides[*at] : 0);
      row_steps_.push_back(row_stride(strides_along(value, rest)));
    }
    offsets_.resize(values.size());
  }

  static std::vector<std::vector<std::int64_t>> strides_of(const std::vector<TensorView>& values, const Shape& rest) {
    std::vector<std::vector<std::int64_t>> strides;
    for (const TensorView& value : values) strides.push_back(strides_along(value, rest));
    return strides;
  }

  std::int64_t length_, row_;
  Rows rows_;
  std::vector<std::int64_t> steps_, row_steps_, offsets_;
};

}  // namespace weft::reference
