// Functions made of primitives, with samples as a primitive has them, so that they pass through the same conformance tests.
#pragma once

#include <vector>

#include "language/op_def.h"
#include "weft/nn.h"

namespace weft::test {

inline const std::vector<OpDef>& plain_functions() {
  static const Dim kA{"a", 6}, kB{"b", 12}, kC{"c", 2};
  static const SampleInput kX{{kA, kB, kC}, uniform(-1, 1), DType::kF32};
  using Build = std::function<Tensors(Graph&, const Tensors&)>;
  const auto function = [](const char* name, std::vector<SampleInput> inputs, Build build) {
    OpDef def;
    def.name = name;
    def.samples = {{std::move(inputs), std::move(build)}};
    return def;
  };
  const auto normed = [](bool training) {
    return [training](Graph&, const Tensors& x) {
      return Tensors{nn::batch_norm(x[0], {kA, kC}, {.training = training}).y};
    };
  };
  static const std::vector<OpDef> kFunctions = {
      function("dynamic_shift", {kX, {{kA}, whole(-14, 14), DType::kI32}},
               [](Graph&, const Tensors& x) {
                 return Tensors{dynamic_shift(x[0], x[1], kB), dynamic_shift(x[0], x[1], kB, true)};
               }),
      function("dynamic_shift_of_all", {kX, {{}, whole(-2, -1), DType::kI64}},
               [](Graph&, const Tensors& x) { return Tensors{dynamic_shift(x[0], x[1], kB)}; }),
      function("sigmoid_cross_entropy",
               {{{kA, kB}, uniform(-9, 9), DType::kF32}, {{kA, kB}, uniform(0, 1), DType::kF32}},
               [](Graph&, const Tensors& x) { return Tensors{sigmoid_cross_entropy(x[0], x[1])}; }),
      function("sample_categorical", {kX},
               [](Graph&, const Tensors& x) {
                 return Tensors{sample_categorical(x[0], kB), sample_categorical(x[0], kB, {.temperature = 0}),
                                sample_categorical(x[0], kB, {.temperature = 0.5, .keep_top_k = 3}),
                                sample_categorical(x[0], kB, {.keep_top_p = 0.6}),
                                sample_categorical(x[0], kA, {.temperature = 2, .keep_top_k = 4, .keep_top_p = 0.5})};
               }),
      function("random_gumbel", {},
               [](Graph& g, const Tensors&) {
                 return Tensors{random_gumbel(g, {kA, kB})};
               }),
      // Without a derivative: every run draws anew, so that differences between runs say nothing. So too below.
      function("multiplicative_jitter", {kX},
               [](Graph&, const Tensors& x) { return Tensors{multiplicative_jitter(stop_gradient(x[0]), 0.25)}; }),
      function("dropout_at_run_time", {kX, {{}, uniform(0.4, 0.6), DType::kF32}},
               [](Graph&, const Tensors& x) {
                 return Tensors{dropout(stop_gradient(x[0]), stop_gradient(x[1]), {kA, kB})};
               }),
      function("batch_norm_training", {kX}, normed(true)),
      function("batch_norm", {kX}, normed(false)),
  };
  return kFunctions;
}

}  // namespace weft::test
