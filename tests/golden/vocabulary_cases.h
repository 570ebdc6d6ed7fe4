// The golden vocabularies as a user writes them: factorized, in clusters, and a mixture of softmaxes.
#pragma once

#include <cmath>

#include "golden/op_case.h"

namespace weft::test {

inline const Dim kModel{"d_model", 6}, kVocab{"vocab", 12}, kLength{"length", 8};

inline Tensor weight_of(const Named& t, const std::string& name, const Shape& shape) {
  return Graph(t.at("h").graph()).variable(name, shape);
}

// [vocab, d_model] as a product through `inner` dims.
inline Tensor factorized(const Named& t, const std::string& name, const Dim& vocab, std::int64_t inner) {
  const Dim middle{"inner_vocab", inner};
  return einsum({weight_of(t, name + "1", {vocab, middle}), weight_of(t, name + "2", {middle, kModel})},
                {vocab, kModel});
}

inline Tensor scaled_hidden(const Named& t) { return t.at("h") * std::pow(static_cast<double>(kModel.size), -0.5); }

inline Named factorized_embedding(const Named& t) {
  const Tensor table = factorized(t, "emb", kVocab, 2);
  return {{"embedding", gather(table, t.at("i"), kVocab)},
          {"logits", einsum_over({scaled_hidden(t), table}, {kModel})}};
}

// Tokens 0 to 4 are classes of the head, 5 to 8 and 9 to 11 those of two tails, which have a class each in the head.
struct Clusters {
  static constexpr std::int64_t kFirst = 5, kSecond = 9;
  const Dim head_classes{"head", 7}, first_classes{"first", 4}, second_classes{"second", 3};
  const Tensor head, first, second;  // tables

  explicit Clusters(const Named& t)
      : head(weight_of(t, "emb_0", {head_classes, kModel})),
        first(factorized(t, "emb_1", first_classes, 3)),
        second(factorized(t, "emb_2", second_classes, 2)) {}
};

inline Named adaptive_softmax_eval(const Named& t) {
  const Clusters c(t);
  const auto log_softmax_of = [&](const Tensor& table, const Dim& classes) {
    return log_softmax(einsum_over({scaled_hidden(t), table}, {kModel}), classes);
  };
  const Tensor head = log_softmax_of(c.head, c.head_classes);
  const auto as_vocab = [](const Tensor& x, const Dim& classes) { return rename(x, classes, "vocab"); };
  const Tensor frequent = slice(head, c.head_classes, 0, Clusters::kFirst);
  const auto tail = [&](std::int64_t cluster, const Tensor& table, const Dim& classes) {
    const Tensor at = constant(Graph(head.graph()), static_cast<double>(Clusters::kFirst + cluster), {}, DType::kI32);
    return as_vocab(log_softmax_of(table, classes) + gather(head, at, c.head_classes), classes);
  };
  const Tensor table = concat({as_vocab(slice(c.head, c.head_classes, 0, Clusters::kFirst), {"head", Clusters::kFirst}),
                               as_vocab(c.first, c.first_classes), as_vocab(c.second, c.second_classes)},
                              "vocab");
  return {{"embedding", gather(table, t.at("i"), kVocab)},
          {"log_softmax", concat({as_vocab(frequent, {"head", Clusters::kFirst}), tail(0, c.first, c.first_classes),
                                  tail(1, c.second, c.second_classes)},
                                 "vocab")}};
}

// `factor`: the share of a row's length whose tokens of the second tail count in its loss.
inline Named adaptive_softmax_loss(const Named& t, double factor) {
  constexpr double kDenominator = 4;
  const Clusters c(t);
  const Tensor& ids = t.at("i");
  const Tensor in_first = logical_and(greater_equal(ids, 1.0 * Clusters::kFirst), less(ids, 1.0 * Clusters::kSecond));
  const Tensor in_second = greater_equal(ids, 1.0 * Clusters::kSecond);
  const auto loss = [&](const Tensor& table, const Tensor& targets, const Dim& classes, const Tensor& counted) {
    const Tensor nll = cross_entropy(einsum_over({scaled_hidden(t), table}, {kModel}), targets, classes);
    return reduce_sum(nll * cast(counted, DType::kF32));
  };
  const auto clamped = [](const Tensor& x, const Dim& classes) {
    return minimum(maximum(x, 0.0), static_cast<double>(classes.size - 1));
  };
  const Tensor head_target = select(in_second, Clusters::kFirst + 1.0, select(in_first, 1.0 * Clusters::kFirst, ids));
  const double most = std::ceil(factor * static_cast<double>(kLength.size));
  const Tensor early = less_equal(cumsum(cast(in_second, DType::kI32), kLength), most);
  const Tensor sum = loss(c.head, head_target, c.head_classes, greater(ids, 0.0)) +
                     loss(c.first, clamped(ids - 1.0 * Clusters::kFirst, c.first_classes), c.first_classes, in_first) +
                     loss(c.second, clamped(ids - 1.0 * Clusters::kSecond, c.second_classes), c.second_classes,
                          logical_and(in_second, early));
  return {{"loss", sum / kDenominator}};
}

inline Named mixture_of_softmaxes(const Named& t) {
  const Dim components{"softmax_components", 3}, copied{"_d_model_copy", kModel.size};
  const Tensor table = weight_of(t, "emb_embedding_weights", {kVocab, kModel});
  const Tensor hidden = scaled_hidden(t);
  const Tensor share =
      softmax(einsum_over({hidden, weight_of(t, "emb_mixture_weights", {components, kModel})}, {kModel}), components);
  const Tensor contexts = tanh(einsum_over(
      {rename(hidden, kModel, copied.name), weight_of(t, "emb_context_weights", {components, copied, kModel})},
      {copied}));
  const Tensor probabilities = softmax(einsum_over({contexts, table}, {kModel}), kVocab);
  return {{"log_probabilities", log(einsum_over({probabilities, share}, {components}))}};
}

inline std::vector<OpCase> vocabulary_cases() {
  return {
      {"factorized_embedding", factorized_embedding},
      {"adaptive_softmax_eval", adaptive_softmax_eval},
      {"adaptive_softmax_loss", [](const Named& t) { return adaptive_softmax_loss(t, 1); }},
      {"adaptive_softmax_loss_projected", [](const Named& t) { return adaptive_softmax_loss(t, 0.25); }},
      {"mixture_of_softmaxes", mixture_of_softmaxes},
  };
}

}  // namespace weft::test
