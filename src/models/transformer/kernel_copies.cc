#include "models/transformer/kernel_copies.h"

namespace weft::models {

namespace {

constexpr double kMostI8 = 127;        // of i8, on both sides of 0
constexpr double kLeastScale = 1e-30;  // a scale: rows of zeros have no other

// Numbers from -127 to 127 in steps of `scale`, the nearest to x.
Tensor in_steps(const Tensor& x, const Tensor& scale, Site site) {
  return cast(floor(add(divide(x, scale, site), 0.5, site), site), DType::kI8, site);
}

// The step that fits the largest number along `dims` into i8.
Tensor step_of(const Tensor& x, const Shape& dims, Site site) {
  const Tensor largest = reduce_max(abs(x, site), dims, site);
  return maximum(divide(largest, kMostI8, site), kLeastScale, site);
}

}  // namespace

nn::Multiply KernelCopies::multiply() {
  if (weights_ == DecodeWeights::kTrained) return {};
  return [this](const Tensor& x, const Tensor& kernel, const Shape& output, Site site) {
    return product(x, kernel, output, site);
  };
}

const KernelCopies::Copy& KernelCopies::copy_of(const Tensor& kernel, const Shape& reduced, DType dtype, Site site) {
  Copy& copy = copies_[kernel.name()];
  if (copy.kernel) return copy;
  const Shape made = kernel.shape().minus(reduced);
  const auto variable = [&](const std::string& name, const Shape& shape, DType stored) {
    return g_.variable("/copy/" + std::string(name_of(dtype)) + "/" + kernel.name() + name, shape, init::zeros(),
                       {.stored = stored, .trainable = false}, site);
  };
  copy.kernel = variable("", made.plus(reduced), dtype);
  const Tensor wide = cast(kernel, DType::kF32, site);
  Tensor value = cast(kernel, dtype, site);
  if (dtype == DType::kI8) {
    copy.scale = variable("/scale", made, DType::kF32);
    const Tensor step = step_of(wide, reduced, site);
    made_.updates.push_back(assign(copy.scale, step, site));
    value = in_steps(wide, step, site);
  }
  made_.updates.push_back(assign(copy.kernel, transpose(value, copy.kernel.shape(), site), site));
  made_.kernels.push_back(kernel.name());
  made_.sums.push_back(reduce_sum(abs(wide, site), site));
  return copy;
}

Tensor KernelCopies::product(const Tensor& x, const Tensor& kernel, const Shape& output, Site site) {
  const Shape reduced = x.shape().minus(output);
  const bool is_i8 = weights_ == DecodeWeights::kI8;
  const DType dtype = is_i8 ? DType::kI8 : weights_ == DecodeWeights::kBF16 ? DType::kBF16 : x.dtype();
  const Copy& copy = copy_of(kernel, reduced, dtype, site);
  if (is_i8) return product_of_i8(x, copy, reduced, output, site);
  return cast(einsum({cast(x, dtype, site), copy.kernel}, output, site), x.dtype(), site);
}

Tensor KernelCopies::product_of_i8(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output,
                                   Site site) {
  const Tensor wide = cast(x, DType::kF32, site), step = step_of(wide, reduced, site);
  const Tensor y = cast(einsum({in_steps(wide, step, site), copy.kernel}, output, site), DType::kF32, site);
  return cast(weft::multiply(weft::multiply(y, step, site), copy.scale, site), x.dtype(), site);
}

}  // namespace weft::models
