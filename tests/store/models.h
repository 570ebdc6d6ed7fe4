// Small models and every optimizer, for tests of storage layouts.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "support/sampling.h"
#include "weft/nn.h"
#include "weft/optim.h"
#include "weft/weft.h"

namespace weft::test {

struct TestModel {
  Graph g;
  Tensor loss;
  Feeds feeds = {};
};

inline Array ids(const Shape& shape, std::int64_t below, std::uint64_t stream) {
  return weft::test::filled(shape, whole(0, static_cast<double>(below)), DType::kI32, stream);
}

inline void feed(TestModel& m, const Tensor& x, std::uint64_t stream) {
  m.feeds.emplace_back(x, weft::test::filled(x.shape(), uniform(-1, 1), DType::kF32, stream));
}

// y = relu(x w) v against given numbers.
inline TestModel two_layer() {
  const Dim batch{"batch", 8}, io{"io", 4}, hidden{"hidden", 12};
  TestModel m;
  const Tensor x = m.g.input("x", {batch, io}), target = m.g.input("target", {batch, io});
  const Tensor w = m.g.variable("w", {io, hidden}, init::fan_in(io));
  const Tensor v = m.g.variable("v", {hidden, io}, init::fan_in(hidden));
  const Tensor y = einsum({relu(einsum({x, w}, {batch, hidden})), v}, {batch, io});
  m.loss = mean(square(y - target));
  feed(m, x, 1);
  feed(m, target, 2);
  return m;
}

// With biases; the last of them, of 5 digits, divides by nothing. A size of 6 only by 2.
inline TestModel mlp() {
  const Dim batch{"batch", 8}, pixel{"pixel", 6}, hidden{"hidden", 16}, width{"width", 8}, digit{"digit", 5};
  TestModel m;
  const Tensor image = m.g.input("image", {batch, pixel}), label = m.g.input("label", {batch}, DType::kI32);
  const auto rectify = [](const Tensor& t, Site site) { return relu(t, site); };
  Tensor h = nn::dense(image, {hidden}, {.activation = rectify, .name = "first"});
  h = nn::dense(h, {width}, {.activation = rectify, .name = "second"});
  m.loss = mean(cross_entropy(nn::dense(h, {digit}, {.name = "logits"}), label, digit));
  feed(m, image, 1);
  m.feeds.emplace_back(label, ids({batch}, digit.size, 2));
  return m;
}

// The digits example: its weights, without its data.
inline TestModel digits() {
  const Dim batch{"batch", 8}, pixel{"pixel", 64}, hidden{"hidden", 32}, digit{"digit", 10};
  TestModel m;
  const Tensor image = m.g.input("image", {batch, pixel}), label = m.g.input("label", {batch}, DType::kI32);
  const Tensor w1 = m.g.variable("w1", {pixel, hidden}, init::fan_in(pixel));
  const Tensor w2 = m.g.variable("w2", {hidden, digit}, init::fan_in(hidden));
  const Tensor logits = einsum({relu(einsum({image, w1}, {batch, hidden})), w2}, {batch, digit});
  m.loss = mean(cross_entropy(logits, label, digit));
  feed(m, image, 1);
  m.feeds.emplace_back(label, ids({batch}, digit.size, 2));
  return m;
}

// One decoder layer; the embedding is also the output table, so that its gradient is a sum.
inline TestModel transformer() {
  const Dim batch{"batch", 4}, length{"length", 4}, model{"d_model", 8}, heads{"heads", 2}, d_kv{"d_kv", 4},
      d_ff{"d_ff", 16}, vocab{"vocab", 12};
  TestModel m;
  const Tensor inputs = m.g.input("inputs", {batch, length}, DType::kI32);
  const Tensor targets = m.g.input("targets", {batch, length}, DType::kI32);
  const Tensor table = m.g.variable("table", {vocab, model}, init::normal(0.5));
  const Tensor positions = m.g.variable("positions", {length, model}, init::normal(0.5));
  Tensor x = gather(table, inputs, vocab) + positions;
  x = x + nn::self_attention(nn::layer_norm(x, model), length, model, heads, d_kv, {.causal = true});
  const auto rectify = [](const Tensor& t, Site site) { return relu(t, site); };
  const Tensor h = nn::dense(x, {d_ff}, {.reduced = {model}, .activation = rectify, .name = "in"});
  x = x + nn::dense(h, {model}, {.reduced = {d_ff}, .bias = false, .name = "out"});
  const Tensor logits = einsum({x, table}, {batch, length, vocab});
  m.loss = mean(cross_entropy(logits, targets, vocab));
  m.feeds.emplace_back(inputs, ids({batch, length}, vocab.size, 1));
  m.feeds.emplace_back(targets, ids({batch, length}, vocab.size, 2));
  return m;
}

inline TestModel build_model(const std::string& name) {
  if (name == "two_layer") return two_layer();
  if (name == "mlp") return mlp();
  return name == "digits" ? digits() : transformer();
}

// sgd has no feeds and no state.
struct TestOptimizer {
  Updates updates;
  std::shared_ptr<const optim::Optimizer> feeder = {};

  Feeds feeds(std::int64_t step) const { return feeder ? feeder->feeds(step, 0.05) : Feeds{}; }
};

inline TestOptimizer build_optimizer(const std::string& name, const TestModel& m) {
  if (name == "sgd") return {optim::sgd(m.loss, m.g.variables(), 0.1)};
  const auto keep = [](auto optimizer) {
    const auto kept = std::make_shared<const decltype(optimizer)>(std::move(optimizer));
    return TestOptimizer{kept->updates(), kept};
  };
  if (name == "momentum") return keep(optim::Momentum(m.loss, m.g.variables()));
  if (name == "adam") return keep(optim::Adam(m.loss, m.g.variables(), {.weight_decay = 0.1}));
  // Factors all weights of two dims that both have 4, keeps a first moment, scales and clips.
  return keep(optim::Adafactor(m.loss, m.g.variables(), {.min_dim_size_to_factor = 4, .beta1 = 0.5}));
}

}  // namespace weft::test
