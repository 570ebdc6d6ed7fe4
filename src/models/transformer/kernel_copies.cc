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

const std::string kLanes = "panel_lanes", kWords = "panel_words";

// The dims with the last one divided: [… last / size, name=size].
Shape divided(const Shape& dims, std::int64_t size, const std::string& name) {
  const Dim last = dims.dims().back();
  const Shape fewer = dims.resized(last.name, last.size / size);
  return size == 1 ? fewer : fewer.plus({{name, size}});
}

}  // namespace

nn::Multiply KernelCopies::multiply() {
  if (weights_ == DecodeWeights::kTrained) return {};
  return [this](const Tensor& x, const Tensor& kernel, const Shape& output, Site site) {
    return product(x, kernel, output, site);
  };
}

// 0 if the kernel cannot lie in panels: on every processor the sizes must divide.
std::int64_t KernelCopies::words_of(const Tensor& kernel, const Shape& reduced, const Shape& made, DType dtype) const {
  const auto divides = [&](const Shape& dims, std::int64_t size) {
    if (dims.empty()) return false;
    const auto parts = panels_.parts.find(dims.dims().back().name);
    return dims.dims().back().size % (size * (parts == panels_.parts.end() ? 1 : parts->second)) == 0;
  };
  const auto words = static_cast<std::int64_t>(4 / size_of(dtype));
  const bool is_product = kernel.shape().rank() == reduced.rank() + made.rank();
  return panels_.lanes > 0 && is_product && divides(reduced, words) && divides(made, panels_.lanes) ? words : 0;
}

const KernelCopies::Copy& KernelCopies::copy_of(const Tensor& kernel, const Shape& reduced, DType dtype, Site site) {
  const std::string trained = variable_name(kernel);
  Copy& copy = copies_[trained];
  if (copy.kernel) return copy;
  const Shape made = kernel.shape().minus(reduced);
  WeightCopy& how = made_.emplace_back(WeightCopy{.kernel = trained, .updates = {}, .sum = {}});
  const auto variable = [&](const std::string& form, const std::string& name, const Shape& shape, DType stored) {
    return g_.variable("/copy/" + std::string(name_of(dtype)) + form + "/" + trained + name, shape, init::zeros(),
                       {.stored = stored, .trainable = false}, site);
  };
  const Tensor wide = cast(kernel, DType::kF32, site);
  how.sum = reduce_sum(abs(wide, site), site);
  Tensor value = cast(kernel, dtype, site);
  if (dtype == DType::kI8) {
    copy.scale = variable("", "/scale", made, DType::kF32);
    const Tensor step = step_of(wide, reduced, site);
    how.updates.push_back(assign(copy.scale, step, site));
    value = in_steps(wide, step, site);
  }
  value = transpose(value, made.plus(reduced), site);
  copy.words = words_of(kernel, reduced, made, dtype);
  if (copy.words > 0) {
    const Shape outputs = divided(made, panels_.lanes, kLanes), sums = divided(reduced, copy.words, kWords);
    const Shape order = outputs.minus({{kLanes, panels_.lanes}})
                            .plus(sums.minus({{kWords, copy.words}}))
                            .plus({{kLanes, panels_.lanes}})
                            .plus(copy.words > 1 ? Shape{{kWords, copy.words}} : Shape{});
    value = transpose(reshape(value, outputs.plus(sums), site), order, site);
  }
  copy.kernel = variable(copy.words > 0 ? "_panels" : "", "", value.shape(), dtype);
  how.updates.push_back(assign(copy.kernel, value, site));
  return copy;
}

Tensor KernelCopies::multiplied(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output,
                                DType dtype, Site site) const {
  if (copy.words == 0) return cast(einsum({x, copy.kernel}, output, site), dtype, site);
  const Tensor words = reshape(x, x.shape().minus(reduced).plus(divided(reduced, copy.words, kWords)), site);
  const Tensor y = einsum({words, copy.kernel}, divided(output, panels_.lanes, kLanes), site);
  return reshape(cast(y, dtype, site), output, site);
}

Tensor KernelCopies::product(const Tensor& x, const Tensor& kernel, const Shape& output, Site site) {
  const Shape reduced = x.shape().minus(output);
  const bool is_i8 = weights_ == DecodeWeights::kI8;
  const DType dtype = is_i8 ? DType::kI8 : weights_ == DecodeWeights::kBF16 ? DType::kBF16 : x.dtype();
  const Copy& copy = copy_of(kernel, reduced, dtype, site);
  if (is_i8) return product_of_i8(x, copy, reduced, output, site);
  return multiplied(cast(x, dtype, site), copy, reduced, output, x.dtype(), site);
}

Tensor KernelCopies::product_of_i8(const Tensor& x, const Copy& copy, const Shape& reduced, const Shape& output,
                                   Site site) {
  const Tensor wide = cast(x, DType::kF32, site), step = step_of(wide, reduced, site);
  const Tensor y = multiplied(in_steps(wide, step, site), copy, reduced, output, DType::kF32, site);
  return cast(weft::multiply(weft::multiply(y, step, site), copy.scale, site), x.dtype(), site);
}

}  // namespace weft::models
