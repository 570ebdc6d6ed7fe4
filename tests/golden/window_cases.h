// The golden ops with windows: convolutions, pools and halos, as Weft says them.
#pragma once

#include "golden/op_case.h"
#include "weft/convolution.h"

namespace weft::test {

inline const Dim kChannelsOut{"co", 3};

inline Tensor kernel_of(const Tensor& x, const std::string& name, const Shape& shape) {
  return Graph(x.graph()).variable(name, shape);
}

inline OpCase conv2d_case(const std::string& name, ConvOptions options, std::set<std::string> refused = {}) {
  return {name, [options](const Named& t) { return only(conv2d(t.at("x"), t.at("f"), options)); }, std::move(refused)};
}

inline OpCase halo_case(std::int64_t halo) {
  const Dim blocks{"blocks", 4}, size{"block_size", 3};
  return {"halo_exchange_" + std::to_string(halo), [=](const Named& t) -> Named {
            const Tensor& x = t.at("x");
            return {{"zero", halo_exchange(x, blocks, size, halo)},
                    {"wrap", halo_exchange(x, blocks, size, halo, true)},
                    {"left_zero", left_halo_exchange(x, blocks, size, halo)}};
          }};
}

// Mesh-TensorFlow keeps the height of a conv1d as a dim of size one.
inline Tensor conv1d_kernel(const Tensor& x, const std::string& name) {
  const Dim taps{"fw", 3}, in{"ci", 3};
  return reshape(kernel_of(x, name, {{"fh", 1}, taps, in, kChannelsOut}), {taps, in, kChannelsOut});
}

inline Named conv1d_outputs(const Named& t) {
  const Tensor& x = t.at("x");
  return {{"same", conv1d(x, conv1d_kernel(x, "k/kernel"))},
          {"valid", conv1d(x, conv1d_kernel(x, "kv/kernel"), {.padding = Padding::kValid})}};
}

// Mesh-TensorFlow's depthwise filter is one variable per tap, the first with a bias.
inline Named separable(const Named& t) {
  const Tensor& x = t.at("x");
  const Dim in{"ci", 3};
  Tensors taps;
  for (int i = 0; i < 4; ++i)
    taps.push_back(kernel_of(x, "s/depthwise_conv_hack/depthwise_dense_" + std::to_string(i) + "/kernel", {in}));
  const Tensor bias = kernel_of(x, "s/depthwise_conv_hack/depthwise_dense_0/bias", {in});
  const Tensor pointwise = kernel_of(x, "s/pointwise_dense/kernel", {in, kChannelsOut});
  const Tensor y = separable_conv1d(x, stack(taps, "taps"), pointwise, {"length", 7}, -2);
  return only(y + einsum({bias, pointwise}) + kernel_of(x, "s/pointwise_dense/bias", {kChannelsOut}));
}

inline Named with_blocks(const Named& t) {
  const Tensor& x = t.at("x");
  const Dim hb{"h_blocks", 2}, wb{"w_blocks", 2}, h{"h", 4}, w{"w", 3}, batch{"batch", 2};
  const Tensor kernel = kernel_of(x, "k/kernel", {{"fh", 3}, {"fw", 3}, {"ci", 3}, kChannelsOut});
  return only(transpose(conv2d_with_blocks(x, kernel, {{hb, h}, {wb, w}}), {batch, hb, h, wb, w, kChannelsOut}));
}

inline Named with_h_blocks(const Named& t) {
  const Tensor kernel = kernel_of(t.at("x"), "k/kernel", {{"fh", 5}, {"fw", 3}, {"ci", 3}, kChannelsOut});
  return only(conv2d_with_blocks(t.at("x"), kernel, {{{"h_blocks", 2}, {"h", 4}}}));
}

// Windows as long as their stride.
inline std::vector<Window> tiles(const Tensor& x, const std::vector<std::pair<std::string, std::int64_t>>& taps) {
  std::vector<Window> windows;
  for (const auto& [dim, size] : taps) windows.push_back(window(x.shape().dim(dim), size, Padding::kValid, size));
  return windows;
}

inline Named pool2d(const Named& t) {
  const Tensor& x = t.at("x");
  return {{"max", max_pool(x, tiles(x, {{"h", 2}, {"w", 2}}))},
          {"avg", avg_pool(x, tiles(x, {{"h", 2}, {"w", 2}}))},
          {"max_4x3", max_pool(x, tiles(x, {{"h", 4}, {"w", 3}}))}};
}

inline Named pool3d(const Named& t) {
  const Tensor& x = t.at("x");
  return {{"max", max_pool(x, tiles(x, {{"dd", 2}, {"h", 2}, {"w", 2}}))},
          {"avg", avg_pool(x, tiles(x, {{"dd", 2}, {"h", 2}}))}};
}

// Refused: where two processors cannot share the places.
inline std::vector<OpCase> window_cases() {
  const ConvOptions valid{.padding = Padding::kValid}, twice{.strides = {2, 2}};
  const ConvOptions valid_twice{.padding = Padding::kValid, .strides = {2, 2}};
  return {
      conv2d_case("conv2d_same_stride1", {}),
      conv2d_case("conv2d_valid_stride1", valid),
      conv2d_case("conv2d_same_stride2", twice, {"w"}),
      conv2d_case("conv2d_valid_stride2", valid_twice, {"h"}),
      conv2d_case("conv2d_5x3", {}),
      conv2d_case("conv2d_same_stride2_odd", twice),
      conv2d_case("conv2d_valid_stride2_odd", valid_twice),
      {"conv2d_with_blocks", with_blocks},
      {"conv2d_with_h_blocks_5", with_h_blocks},
      {"conv2d_transpose",
       [](const Named& t) {
         const Tensor kernel = kernel_of(t.at("x"), "k/kernel", {{"fh", 2}, {"fw", 2}, kChannelsOut, {"ci", 3}});
         return only(conv2d_transpose(t.at("x"), kernel, {.strides = {2, 2}}));
       }},
      {"conv3d",
       [](const Named& t) {
         const Shape kernel{{"fd", 3}, {"fh", 3}, {"fw", 3}, {"ci", 3}, kChannelsOut};
         return only(conv3d(t.at("x"), kernel_of(t.at("x"), "k/kernel", kernel)));
       }},
      {"conv1d", conv1d_outputs},
      {"separable_conv1d", separable},
      {"pool2d", pool2d, {"w"}},
      {"pool3d", pool3d, {"w"}},
      halo_case(1),
      halo_case(2),
      halo_case(4),
      halo_case(7),
  };
}

}  // namespace weft::test
