// The decoder-only Transformer of the golden data, as a user writes it: layer norm before, no biases, no dropout.
#pragma once

#include <map>

#include "golden/folder.h"
#include "weft/nn.h"

namespace weft::test {

struct LmSizes {
  std::int64_t vocab, d_model, heads, d_kv, d_ff, layers, length, batch;
};

inline LmSizes lm_sizes(const nlohmann::json& c) {
  return {.vocab = c.at("vocab"),
          .d_model = c.at("d_model"),
          .heads = c.at("heads"),
          .d_kv = c.at("d_head"),
          .d_ff = c.at("d_ff"),
          .layers = c.at("layers"),
          .length = c.at("seq"),
          .batch = c.at("batch")};
}

// Weights are called as in the data; the first ones are `<prefix><name>` of the file.
class Lm {
 public:
  Lm(const LmSizes& sizes, const Safetensors& data, const std::string& prefix)
      : data_(data),
        prefix_(prefix),
        batch_{"batch", sizes.batch},
        length_{"length", sizes.length},
        memory_{"memory_length", sizes.length},
        d_model_{"d_model", sizes.d_model},
        heads_{"heads", sizes.heads},
        d_kv_{"d_kv", sizes.d_kv},
        d_ff_{"d_ff", sizes.d_ff},
        vocab_{"vocab", sizes.vocab} {
    tokens = graph.input("tokens", {batch_, length_}, DType::kI32);
    targets = graph.input("targets", {batch_, length_}, DType::kI32);
    Tensor x = gather(weight("embed", {vocab_, d_model_}), tokens, vocab_) + weight("pos", {length_, d_model_});
    for (std::int64_t i = 0; i < sizes.layers; ++i) {
      const std::string layer = str("layer", i, ".");
      x = x + attention(norm(x, layer + "ln1"), layer);
      x = x + feed_forward(norm(x, layer + "ln2"), layer);
    }
    logits = einsum({norm(x, "lnf"), weight("unembed", {d_model_, vocab_})}, {batch_, length_, vocab_});
    loss = mean(cross_entropy(logits, targets, vocab_));
  }

  // The batch of the data, its tensors called `<prefix>tokens` and `<prefix>targets`.
  Feeds feeds(const std::string& prefix) const {
    return {{tokens, data_.read(prefix + "tokens", {"batch", "length"})},
            {targets, data_.read(prefix + "targets", {"batch", "length"})}};
  }

  // A tensor of the data that has a weight's shape.
  Array like(const std::string& weight, const std::string& name) const {
    return data_.read(name, weights.at(weight).shape().names());
  }

  Graph graph;
  Tensor tokens, targets, logits, loss;
  std::map<std::string, Tensor> weights;

 private:
  Tensor weight(const std::string& name, const Shape& shape) {
    const Tensor w = graph.variable(name, shape, init::values(data_.read(prefix_ + name, shape.names())));
    weights[name] = w;
    return w;
  }

  Tensor norm(const Tensor& x, const std::string& name) {
    const Tensor centred = x - mean(x, {d_model_});
    const Tensor scale = rsqrt(mean(square(centred), {d_model_}) + 1e-6);
    return centred * scale * weight(name + ".scale", {d_model_}) + weight(name + ".bias", {d_model_});
  }

  Tensor attention(const Tensor& h, const std::string& layer) {
    const Tensor seen = rename(h, length_, "memory_length");
    const Shape weight_shape{d_model_, heads_, d_kv_}, memory_shape{batch_, heads_, memory_, d_kv_};
    const Tensor q = einsum({h, weight(layer + "wq", weight_shape)}, {batch_, heads_, length_, d_kv_});
    const Tensor k = einsum({seen, weight(layer + "wk", weight_shape)}, memory_shape);
    const Tensor v = einsum({seen, weight(layer + "wv", weight_shape)}, memory_shape);
    const Tensor mixed = attend(q, k, v, memory_, d_kv_, {.causal = true});
    return einsum({mixed, weight(layer + "wo", {heads_, d_kv_, d_model_})}, {batch_, length_, d_model_});
  }

  Tensor feed_forward(const Tensor& h, const std::string& layer) {
    const Tensor inner = relu(einsum({h, weight(layer + "wi", {d_model_, d_ff_})}, {batch_, length_, d_ff_}));
    return einsum({inner, weight(layer + "wf", {d_ff_, d_model_})}, {batch_, length_, d_model_});
  }

  const Safetensors& data_;
  std::string prefix_;
  Dim batch_, length_, memory_, d_model_, heads_, d_kv_, d_ff_, vocab_;
};

// Where the model is trained; `model_dims` are those that two processors of an axis can share.
inline std::vector<Where> lm_places(const std::string& model_dims) {
  return {{"OneProcessor", "", ""},
          {"Data2", "data:2", "batch:data"},
          {"Data4", "data:4", "batch:data"},
          {"Model2", "model:2", model_dims + ":model"},
          {"Hidden2", "m:2", "d_model:m"},
          {"Length2", "seq:2", "length:seq"},
          {"Data2Model2", "data:2 model:2", "batch:data " + model_dims + ":model"},
          {"Rows2Cols2", "rows:2 cols:2", model_dims + ":rows d_model:cols"},
          {"Length2Model2", "seq:2 model:2", "length:seq " + model_dims + ":model"}};
}

}  // namespace weft::test
