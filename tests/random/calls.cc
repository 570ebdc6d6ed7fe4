// The functions on tensors, family by family.
#include "calls_macros.h"

namespace weft::random_graphs {

namespace {

// Values from nothing. Arguments of an input after its dtype are those of filled().
const Calls kSourceCalls = {
    WEFT_CALL("input", g.input(a.text(0), a.shape(1), a.dtype(2))),
    WEFT_CALL("input_extreme", g.input(a.text(0), a.shape(1), a.dtype(2))),
    WEFT_CALL("variable", g.variable(a.text(0), a.shape(1), init::uniform(a.number(2), a.number(3)))),
    WEFT_CALL("variable_narrow",
              g.variable(a.text(0), a.shape(1), init::uniform(a.number(2), a.number(3)), {.activation = DType::kBF16})),
    WEFT_CALL("variable_whole", g.variable(a.text(0), a.shape(1), init::constant(a.number(2)),
                                           {.stored = DType::kI32, .trainable = false})),
    WEFT_CALL("variable_mixed", cast(g.variable(a.text(0), a.shape(1), init::normal(a.number(2)),
                                                {.stored = DType::kBF16, .slice = DType::kF32}),
                                     DType::kF32)),
    WEFT_CALL("constant", constant(g, a.number(0), a.shape(1), a.dtype(2))),
    WEFT_CALL("table", constant(g, filled(a.shape(0), a.dtype(1), a.number(2), a.number(3), a.flag(4), a.integer(5)))),
    WEFT_UNARY(zeros_like),
    WEFT_UNARY(ones_like),
    WEFT_CALL("iota", iota(g, a.dim(0), a.dtype(1))),
    WEFT_CALL("random_uniform", random_uniform(g, a.shape(0), a.number(1), a.number(2))),
    WEFT_CALL("random_normal", random_normal(g, a.shape(0), a.number(1), a.number(2))),
    WEFT_CALL("random_truncated_normal", random_truncated_normal(g, a.shape(0), a.number(1), a.number(2))),
    WEFT_CALL("random_bernoulli", random_bernoulli(g, a.shape(0), a.number(1), a.dtype(2))),
    WEFT_CALL("random_gumbel", random_gumbel(g, a.shape(0))),
    WEFT_CALL("multiplicative_jitter", multiplicative_jitter(a.x(0), a.number(1))),
    WEFT_CALL("dropout", dropout(a.x(0), a.number(1))),
    WEFT_CALL("dropout_run_time", dropout(a.x(0), stop_gradient(sigmoid(a.x(1))))),
    WEFT_CALL("dropout_noise", dropout(a.x(0), a.number(1), a.shape(2))),
};

const Calls kPointwiseCalls = {
    // clang-format off
    WEFT_UNARY(identity), WEFT_UNARY(negative), WEFT_UNARY(abs), WEFT_UNARY(sign), WEFT_UNARY(floor), WEFT_UNARY(square),
    WEFT_UNARY(sqrt), WEFT_UNARY(rsqrt), WEFT_UNARY(reciprocal), WEFT_UNARY(exp), WEFT_UNARY(expm1), WEFT_UNARY(log),
    WEFT_UNARY(log1p), WEFT_UNARY(sin), WEFT_UNARY(cos), WEFT_UNARY(asinh), WEFT_UNARY(tanh), WEFT_UNARY(erf),
    WEFT_UNARY(sigmoid), WEFT_UNARY(softplus), WEFT_UNARY(relu), WEFT_UNARY(elu), WEFT_UNARY(selu), WEFT_UNARY(swish),
    WEFT_UNARY(gelu), WEFT_UNARY(logical_not), WEFT_UNARY(stop_gradient),
    WEFT_BINARY(add), WEFT_BINARY(subtract), WEFT_BINARY(multiply), WEFT_BINARY(divide), WEFT_BINARY(pow),
    WEFT_BINARY(minimum), WEFT_BINARY(maximum), WEFT_BINARY(floordiv), WEFT_BINARY(mod), WEFT_BINARY(less),
    WEFT_BINARY(less_equal), WEFT_BINARY(greater), WEFT_BINARY(greater_equal), WEFT_BINARY(equal),
    WEFT_BINARY(not_equal), WEFT_BINARY(logical_and), WEFT_BINARY(logical_or),
    // clang-format on
    WEFT_CALL("clip_activation_gradient", clip_activation_gradient(a.x(0), a.number(1))),
    WEFT_CALL("leaky_relu", leaky_relu(a.x(0), a.number(1))),
    WEFT_CALL("cast", cast(a.x(0), a.dtype(1))),
    WEFT_CALL("print", print(a.x(0), a.text(1))),
    WEFT_CALL("add_number", a.x(0) + a.number(1)),
    WEFT_CALL("number_minus", a.number(0) - a.x(1)),
    WEFT_CALL("scale", a.x(0) * a.number(1)),
    WEFT_CALL("divide_number", a.x(0) / a.number(1)),
    WEFT_CALL("number_over", a.number(0) / a.x(1)),
    WEFT_CALL("minus", -a.x(0)),
    WEFT_CALL("floordiv_number", floordiv(a.x(0), a.number(1))),
    WEFT_CALL("mod_number", mod(a.x(0), a.number(1))),
    WEFT_CALL("greater_number", greater(a.x(0), a.number(1))),
    WEFT_CALL("equal_number", equal(a.x(0), a.number(1))),
    WEFT_CALL("maximum_number", maximum(a.x(0), a.number(1))),
    WEFT_CALL("select", select(a.x(0), a.x(1), a.x(2))),
    WEFT_CALL("select_number", select(a.x(0), a.x(1), a.number(2))),
    WEFT_CALL("add_n", add_n(a.xs(0))),
    WEFT_CALL("with_layout", with_layout(a.x(0), a.text(1))),
    WEFT_CALL("custom_square", custom_gradient(
                                   {a.x(0)}, [](const Tensors& t) { return Tensors{square(t[0])}; },
                                   [](const Tensors& in, const Tensors&, const Tensors& dy) {
                                     return Tensors{dy[0] * tanh(in[0])};
                                   })[0]),
    WEFT_CALL("custom_product", custom_gradient(
                                    {a.x(0), a.x(1)},
                                    [](const Tensors& t) {
                                      return Tensors{t[0] * t[1], t[0] + t[1]};
                                    },
                                    [](const Tensors& in, const Tensors&, const Tensors& dy) {
                                      return Tensors{reduce_sum_to(dy[0] * 0.5 + dy[1], in[0].shape()), Tensor()};
                                    })[static_cast<std::size_t>(a.integer(2))]),
};

const Calls kReduceCalls = {
    WEFT_CALL("einsum", einsum(a.xs(0), a.shape(1))),
    WEFT_CALL("einsum_names", einsum(a.xs(0))),
    WEFT_CALL("einsum_over", einsum_over(a.xs(0), a.shape(1))),
    WEFT_UNARY(reduce_sum),
    WEFT_UNARY(mean),
    WEFT_UNARY(reduce_max),
    WEFT_UNARY(reduce_min),
    WEFT_UNARY(reduce_product),
    WEFT_UNARY(reduce_any),
    WEFT_UNARY(reduce_all),
    WEFT_CALL("reduce_sum_dims", reduce_sum(a.x(0), a.shape(1))),
    WEFT_CALL("mean_dims", mean(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_max_dims", reduce_max(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_min_dims", reduce_min(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_product_dims", reduce_product(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_any_dims", reduce_any(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_all_dims", reduce_all(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_sum_to", reduce_sum_to(a.x(0), a.shape(1))),
    WEFT_CALL("reduce_logsumexp", reduce_logsumexp(a.x(0), a.dim(1))),
    WEFT_CALL("reduce_logsumexp_number", reduce_logsumexp(a.x(0), a.dim(1), a.number(2))),
    WEFT_CALL("reduce_logsumexp_extra", reduce_logsumexp(a.x(0), a.dim(1), a.x(2))),
    WEFT_CALL("softmax", softmax(a.x(0), a.dim(1))),
    WEFT_CALL("softmax_number", softmax(a.x(0), a.dim(1), a.number(2))),
    WEFT_CALL("softmax_extra", softmax(a.x(0), a.dim(1), a.x(2))),
    WEFT_CALL("log_softmax", log_softmax(a.x(0), a.dim(1))),
    // The places along one dim of x look at those of y; what has to be whole gets a name that no layout has.
    WEFT_CALL("attend", rename(attend(rename(a.x(0), a.dim(2), "attend_key"),
                                      rename(rename(a.x(1), a.dim(3), "attend_seen"), a.dim(2), "attend_key"),
                                      rename(rename(a.x(1), a.dim(3), "attend_seen"), a.dim(2), "attend_key"),
                                      {"attend_seen", a.integer(4)}, {"attend_key", a.integer(5)},
                                      {.causal = a.flag(6), .length = a.text(7)}),
                               {"attend_key", a.integer(5)}, a.text(8))),
    WEFT_CALL(
        "attend_biased",
        rename(attend(rename(a.x(0), a.dim(2), "attend_key"),
                      rename(rename(a.x(1), a.dim(3), "attend_seen"), a.dim(2), "attend_key"),
                      rename(rename(a.x(1), a.dim(3), "attend_seen"), a.dim(2), "attend_key"),
                      {"attend_seen", a.integer(4)}, {"attend_key", a.integer(5)},
                      {.causal = a.flag(6), .length = a.text(7), .bias = rename(a.x(9), a.dim(3), "attend_seen")}),
               {"attend_key", a.integer(5)}, a.text(8))),
    WEFT_CALL("cross_entropy", cross_entropy(a.x(0), a.x(1), a.dim(2), a.number(3))),
    WEFT_CALL("sigmoid_cross_entropy", sigmoid_cross_entropy(a.x(0), a.x(1))),
    WEFT_CALL("cumsum", cumsum(a.x(0), a.dim(1), a.flag(2), a.flag(3))),
    WEFT_CALL("cummax", cummax(a.x(0), a.dim(1), a.flag(2))),
};

const Calls kMoveCalls = {
    WEFT_CALL("one_hot", one_hot(a.x(0), a.dim(1), a.number(2), a.number(3))),
    WEFT_CALL("gather", gather(a.x(0), a.x(1), a.dim(2))),
    WEFT_CALL("scatter_add", scatter_add(a.x(0), a.x(1), a.dim(2), a.shape(3))),
    WEFT_CALL("top_k_values", top_k(a.x(0), a.dim(1), a.dim(2)).values),
    WEFT_CALL("top_k_indices", top_k(a.x(0), a.dim(1), a.dim(2)).indices),
    WEFT_CALL("smallest_values", top_k(a.x(0), a.dim(1), a.dim(2), true).values),
    WEFT_CALL("sort_values", sort(a.x(0), a.dim(1), a.flag(2)).values),
    WEFT_CALL("sort_indices", sort(a.x(0), a.dim(1), a.flag(2)).indices),
    WEFT_CALL("argmax", argmax(a.x(0), a.dim(1))),
    WEFT_CALL("argmin", argmin(a.x(0), a.dim(1))),
    WEFT_CALL("nth_largest", nth_largest(a.x(0), a.integer(1), a.dim(2))),
    WEFT_CALL("nth_smallest", nth_smallest(a.x(0), a.integer(1), a.dim(2))),
    WEFT_CALL("sample_categorical",
              sample_categorical(a.x(0), a.dim(1), {.temperature = a.number(2), .keep_top_k = a.integer(3)})),
    WEFT_CALL("take_along", take_along(a.x(0), a.x(1), a.dim(2))),
    WEFT_CALL("put_along", put_along(a.x(0), a.x(1), a.dim(2))),
    WEFT_CALL("dynamic_slice", dynamic_slice(a.x(0), a.x(1), a.dim(2), a.integer(3))),
    WEFT_CALL("dynamic_update", dynamic_update(a.x(0), a.x(1), a.x(2), a.dim(3))),
    WEFT_CALL("scatter_update", scatter_update(a.x(0), a.x(1), a.x(2), a.dim(3))),
    WEFT_CALL("broadcast", broadcast(a.x(0), a.shape(1))),
    WEFT_CALL("transpose", transpose(a.x(0), a.shape(1))),
    WEFT_CALL("reshape", reshape(a.x(0), a.shape(1))),
    WEFT_CALL("rename", rename(a.x(0), a.dim(1), a.text(2))),
    WEFT_CALL("split_dim", split_dim(a.x(0), a.dim(1), a.shape(2))),
    WEFT_CALL("merge_dims", merge_dims(a.x(0), a.shape(1), a.text(2))),
    WEFT_CALL("concat", concat(a.xs(0), a.text(1))),
    WEFT_CALL("split", split(a.x(0), a.dim(1), a.integer(2))[static_cast<std::size_t>(a.integer(3))]),
    WEFT_CALL("stack", stack(a.xs(0), a.text(1))),
    WEFT_CALL("unstack", unstack(a.x(0), a.dim(1))[static_cast<std::size_t>(a.integer(2))]),
    WEFT_CALL("slice", slice(a.x(0), a.dim(1), a.integer(2), a.integer(3))),
    WEFT_CALL("pad", pad(a.x(0), a.dim(1), a.integer(2), a.integer(3))),
    WEFT_CALL("dynamic_shift", dynamic_shift(a.x(0), a.x(1), a.dim(2), a.flag(3))),
    WEFT_CALL("shift", shift(a.x(0), a.dim(1), a.integer(2), a.flag(3))),
};

const Calls kWindowCalls = {
    WEFT_CALL(
        "convolution",
        convolution(a.x(0), a.x(1),
                    {Window{a.dim(2), a.dim(3), a.integer(4), a.integer(5), a.integer(6), a.integer(7)}}, a.shape(8))),
    WEFT_CALL("max_pool",
              max_pool(a.x(0), {Window{a.dim(1), a.dim(2), a.integer(3), a.integer(4), a.integer(5), a.integer(6)}})),
    WEFT_CALL("min_pool",
              min_pool(a.x(0), {Window{a.dim(1), a.dim(2), a.integer(3), a.integer(4), a.integer(5), a.integer(6)}})),
    WEFT_CALL("sum_pool",
              sum_pool(a.x(0), {Window{a.dim(1), a.dim(2), a.integer(3), a.integer(4), a.integer(5), a.integer(6)}})),
    WEFT_CALL("avg_pool",
              avg_pool(a.x(0), {Window{a.dim(1), a.dim(2), a.integer(3), a.integer(4), a.integer(5), a.integer(6)}})),
};

}  // namespace

const Calls& all_calls() {
  static const Calls calls = [] {
    Calls all = region_calls();
    for (const Calls* family : {&kSourceCalls, &kPointwiseCalls, &kReduceCalls, &kMoveCalls, &kWindowCalls})
      all.insert(family->begin(), family->end());
    return all;
  }();
  return calls;
}

const Call& call_of(const Step& step) { return all_calls().at(step.function); }

}  // namespace weft::random_graphs
