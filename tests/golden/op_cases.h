// The golden ops as Weft says them: for each case of golden/ops, the graph that must give its outputs.
#pragma once

#include "golden/op_case.h"
#include "golden/vocabulary_cases.h"
#include "golden/window_cases.h"

namespace weft::test {

// Sizes of golden/ops/case.json.
inline const Dim kA{"a", 4}, kB{"b", 6}, kC{"c", 8}, kD{"d", 3}, kE{"e", 2};

inline std::vector<OpCase> contraction_cases() {
  return {
      {"einsum_matmul", [](const Named& t) { return only(einsum({t.at("x"), t.at("w")}, {kA, kC})); }},
      {"einsum_nary", [](const Named& t) { return only(einsum({t.at("x"), t.at("y"), t.at("z")}, {kD, kA})); }},
      {"einsum_broadcast_output", [](const Named& t) { return only(einsum({t.at("x"), t.at("y")}, {kE, kA})); }},
      {"einsum_default_reduced", [](const Named& t) { return only(einsum({t.at("x"), t.at("y")})); }},
      {"einsum_reduced_dims", [](const Named& t) { return only(einsum_over({t.at("x"), t.at("y")}, {kA})); }},
      {"einsum_batch", [](const Named& t) { return only(einsum({t.at("x"), t.at("y")}, {kB, kA, kD})); }},
      {"einsum_one_input", [](const Named& t) { return only(einsum({t.at("x")}, {kC, kA})); }},
  };
}

inline Named activations(const Named& t) {
  const Tensor& x = t.at("x");
  return {{"sin", sin(x)},   {"cos", cos(x)},     {"square", square(x)},        {"exp", exp(x)},
          {"tanh", tanh(x)}, {"elu", elu(x)},     {"negative", negative(x)},    {"sigmoid", sigmoid(x)},
          {"selu", selu(x)}, {"relu", relu(x)},   {"leaky_relu", leaky_relu(x)}, {"softplus", softplus(x)},
          {"abs", abs(x)},   {"swish", swish(x)}, {"gelu", gelu(x)}};
}

inline Named integer_functions(const Named& t) {
  const Tensor &x = t.at("x"), &y = t.at("y");
  return {{"floordiv", floordiv(x, y)}, {"mod", mod(x, y)},           {"less", less(x, y)},
          {"equal", equal(x, y)},       {"greater", greater(x, y)},   {"less_equal", less_equal(x, y)},
          {"maximum", maximum(x, y)},   {"minimum", minimum(x, y)},   {"not_equal", not_equal(x, y)},
          {"to_float", cast(x, DType::kF32)}};
}

inline std::vector<OpCase> pointwise_cases() {
  return {
      {"broadcast_add_mul_sub_div",
       [](const Named& t) -> Named {
         const Tensor &x = t.at("x"), &y = t.at("y");
         return {{"add", x + y}, {"mul", x * y}, {"sub", x - y}, {"div", x / (y * y + 0.5)}};
       }},
      {"activations", activations},
      {"positive_functions",
       [](const Named& t) -> Named {
         const Tensor p = t.at("x") * t.at("x") + 0.3;
         return {{"sqrt", sqrt(p)}, {"rsqrt", rsqrt(p)}, {"log", log(p)}, {"reciprocal", reciprocal(p)},
                 {"pow", pow(p, 0.7)}};
       }},
      {"integers", integer_functions},
      {"where_mask",
       [](const Named& t) { return only(select(cast(t.at("m"), DType::kBool), t.at("x"), t.at("y"))); }},
      {"min_max_with_ties",
       [](const Named& t) -> Named {
         return {{"max", maximum(t.at("x"), t.at("y"))}, {"min", minimum(t.at("x"), t.at("y"))}};
       }},
  };
}

// Pooling and striding by hand: a dim falls into (windows, place in the window), and the place is joined.
inline Named pools(const Named& t) {
  const Dim low{"low", 2};
  const Tensor &x = t.at("x"), windows = split_dim(x, kC, {{"c", kC.size / 2}, low});
  const Tensor first = constant(Graph(x.graph()), 0, {}, DType::kI32);
  return {{"mean", mean(windows, {low})}, {"max", reduce_max(windows, {low})}, {"stride", gather(windows, first, low)},
          {"first", gather(x, first, kC)}};
}

inline std::vector<OpCase> reduction_cases() {
  return {
      {"reduce_sum_mean",
       [](const Named& t) -> Named {
         const Tensor& x = t.at("x");
         return {{"sum_b", reduce_sum(x, {kB})}, {"mean_to_c", mean(x, {kA, kB})}, {"sum_all", reduce_sum(x)},
                 {"mean_to_ca", transpose(mean(x, {kB}), {kC, kA})}};
       }},
      {"reduce_max_min",
       [](const Named& t) -> Named {
         return {{"max_b", reduce_max(t.at("x"), {kB})}, {"min_to_b", reduce_min(t.at("x"), {kA, kC})}};
       }},
      {"reduce_max_with_ties", [](const Named& t) { return only(reduce_max(t.at("x"), {kB})); }},
      {"reduce_any_all",
       [](const Named& t) -> Named {
         const Tensor x = cast(t.at("x"), DType::kBool);
         return {{"any", reduce_any(x, {kB})}, {"all", reduce_all(x, {kB})}};
       }},
      {"cumsum",
       [](const Named& t) -> Named {
         return {{"inclusive", cumsum(t.at("x"), kB)}, {"exclusive", cumsum(t.at("x"), kB, true)}};
       }},
      {"softmax_family",
       [](const Named& t) -> Named {
         const Tensor& x = t.at("x");
         return {{"softmax", softmax(x, kB)}, {"log_softmax", log_softmax(x, kB)},
                 {"logsumexp", reduce_logsumexp(x, kB)}};
       }},
      {"while_loop",
       [](const Named& t) {
         const Tensor& x = t.at("x");
         return only(loop(Graph(x.graph()), 5, {x},
                          [](const Tensor&, const Tensors& c) { return LoopStep{{tanh(c[0]) + 0.1}, {}, {}, {}}; })
                         .carried[0]);
       }},
      {"recompute_grad",
       [](const Named& t) {
         const Tensor &x = t.at("x"), &w = t.at("w");
         return only(recompute(Graph(x.graph()), [&] { return Tensors{tanh(einsum({x, w})) * 0.5}; })[0]);
       }},
      {"softmax_extra_logit",
       [](const Named& t) -> Named {
         const Tensor &x = t.at("x"), &extra = t.at("extra");
         return {{"softmax_0", softmax(x, kB, 0.0)}, {"softmax_t", softmax(x, kB, extra)},
                 {"logsumexp_t", reduce_logsumexp(x, kB, extra)}};
       },
       {},
       {},
       {"extra"}},
      {"pool_stride_1d", pools},
      {"sigmoid_cross_entropy", [](const Named& t) { return only(sigmoid_cross_entropy(t.at("x"), t.at("z"))); }},
      {"softmax_cross_entropy",
       [](const Named& t) -> Named {
         const Tensor &x = t.at("x"), &i = t.at("i");
         return {{"hard", cross_entropy(x, i, kC)}, {"hard_z", cross_entropy(x, i, kC, 0.01)},
                 {"soft_z", cross_entropy(x, softmax(t.at("soft"), kC), kC, 0.01)}};
       }},
  };
}

inline OpCase top_k_case(std::int64_t k) {
  return {"top_k_" + std::to_string(k), [k](const Named& t) -> Named {
            const TopKResult best = top_k(t.at("x"), kC, {"k", k});
            return {{"values", best.values}, {"indices", best.indices}};
          }};
}

inline std::vector<OpCase> index_cases() {
  return {
      {"one_hot",
       [](const Named& t) -> Named {
         return {{"plain", one_hot(t.at("i"), kC)}, {"on_off", one_hot(t.at("i"), kC, 0.9, 0.1)}};
       }},
      {"gather_out_of_range", [](const Named& t) { return only(gather(t.at("w"), t.at("i"), kC)); }},
      {"gather_output_shape", [](const Named& t) { return only(gather(t.at("w"), t.at("i"), kC)); }},
      top_k_case(1),
      top_k_case(3),
      top_k_case(5),
      {"top_1_argmax_nth",
       [](const Named& t) -> Named {
         const TopKResult best = top_k(t.at("x"), kC, {"k", 1});
         const Shape rest{kA, kB};
         return {{"value", reshape(best.values, rest)}, {"index", reshape(best.indices, rest)},
                 {"argmax", argmax(t.at("x"), kC)},
                 {"third_largest", nth_largest(t.at("x"), 2, kC)},
                 {"second_smallest", nth_smallest(t.at("x"), 1, kC)}};
       }},
  };
}

inline OpCase shift_case(const std::string& name, std::int64_t offset) {
  return {name, [offset](const Named& t) -> Named {
            return {{"wrap", shift(t.at("x"), kB, offset, true)}, {"zero", shift(t.at("x"), kB, offset)}};
          }};
}

inline Named reshapes(const Named& t) {
  const Tensor& x = t.at("x");
  return {{"split", split_dim(x, kC, {{"c1", 2}, {"c2", 4}})}, {"merge", merge_dims(x, {kC, kB}, "cb")},
          {"all", reshape(x, {{"n", 192}})}, {"regroup", merge_dims(x, {kA, kC}, "ac")},
          {"rename", rename(x, kC, "cc")}};
}

inline Named stacks(const Named& t) {
  const Tensor stacked = stack({t.at("x"), t.at("y")}, "s");
  Tensors rows = unstack(t.at("x"), kA);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = rows[i] * static_cast<double>(i + 1);
  return {{"stack0", stacked}, {"stack1", transpose(stacked, {kA, {"s", 2}, kB})}, {"unstacked", add_n(rows)}};
}

inline std::vector<OpCase> moving_cases() {
  return {
      shift_case("shift_2", 2),
      shift_case("shift_minus1", -1),
      shift_case("shift_7", 7),
      {"dynamic_shift",
       [](const Named& t) -> Named {
         const Tensor &x = t.at("x"), &o = t.at("o");
         return {{"wrap", dynamic_shift(x, o, kB, true)}, {"zero", dynamic_shift(x, o, kB)}};
       }},
      {"reshape", reshapes},
      {"transpose", [](const Named& t) { return only(transpose(t.at("x"), {kC, kA, kB})); }},
      // The results are of size 9, 5, and 11 (of pieces 6, 2, 3), which two processors cannot share.
      {"pad", [](const Named& t) { return only(pad(t.at("x"), kB, 2, 1)); }, {"b"}},
      {"slice", [](const Named& t) { return only(slice(t.at("x"), kC, 1, kC.size - 3)); }, {"c"}},
      {"concat_split",
       [](const Named& t) -> Named {
         return {{"concat", concat({t.at("x"), t.at("y"), t.at("z")}, "b")}, {"split1", split(t.at("x"), kB, 2)[1]}};
       },
       {"b"}},
      {"stack_unstack", stacks},
  };
}

inline OpCase batch_norm_case(const std::string& name, bool training) {
  return {name,
          [training](const Named& t) {
            return only(nn::batch_norm(t.at("x"), {kA, kB}, {.training = training, .name = "bn"}).y);
          },
          {},
          {{"bn/scale", "bn/batch_norm_scale"},
           {"bn/bias", "bn/batch_norm_bias"},
           {"bn/moving_mean", "bn/bn_moving_mean"},
           {"bn/moving_variance", "bn/bn_moving_variance"}}};
}

inline std::vector<OpCase> layer_cases() {
  return {
      batch_norm_case("batch_norm_train", true),
      batch_norm_case("batch_norm_eval", false),
      {"dense_bias_relu",
       [](const Named& t) {
         return only(nn::dense(t.at("x"), {kC}, {.reduced = {kB}, .activation = relu, .name = "k"}));
       }},
      {"dense_expert_dims",
       [](const Named& t) {
         return only(nn::dense(t.at("x"), {kC}, {.reduced = {kB}, .experts = {kA}, .bias = false, .name = "k"}));
       }},
      {"dense_product",
       [](const Named& t) {
         return only(nn::dense_product(t.at("x"), {kC}, {gelu, {}}, {.reduced = {kB}, .bias = false, .name = "k"}));
       }},
      {"layer_norm", [](const Named& t) { return only(nn::layer_norm(t.at("x"), kC)); }, {},
       {{"layer_norm/scale", "layer_prepostprocess/layer_norm/layer_norm_scale"},
        {"layer_norm/bias", "layer_prepostprocess/layer_norm/layer_norm_bias"}}},
  };
}

inline std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  for (const auto& family : {contraction_cases(), pointwise_cases(), reduction_cases(), index_cases(), moving_cases(),
                             layer_cases(), window_cases(), vocabulary_cases()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace weft::test
