// A decoder-only language model: embedding and positions, layers of attention and a relu feed-forward net, each after a
// layer norm and added back, and an output table of its own (not the embedding's).
#include "models/catalog.h"
#include "weft/nn.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::models {

namespace {

struct Dims {
  Dim batch, length, d_model, heads, d_kv, d_ff, vocab;
};

Tensor feed_forward(const Tensor& x, const Dims& d) {
  Graph g(x.graph());
  const auto scope = g.scope("feed_forward");
  const auto rectify = [](const Tensor& t, Site site) { return relu(t, site); };
  const Tensor h = nn::dense(x, {d.d_ff}, {.reduced = {d.d_model}, .bias = false, .activation = rectify, .name = "in"});
  return nn::dense(h, {d.d_model}, {.reduced = {d.d_ff}, .bias = false, .name = "out"});
}

Tensor decoder_layer(const Tensor& x, const Dims& d) {
  const Tensor a = nn::layer_norm(x, d.d_model, {.name = "attention_norm"});
  const Tensor mixed = x + nn::self_attention(a, d.length, d.d_model, d.heads, d.d_kv, {.causal = true});
  return mixed + feed_forward(nn::layer_norm(mixed, d.d_model, {.name = "feed_forward_norm"}), d);
}

}  // namespace

void build_transformer(Model& model, const Sizes& sizes) {
  const Dims d{dim(sizes, "batch"), dim(sizes, "length"), dim(sizes, "d_model"), dim(sizes, "heads"),
               dim(sizes, "d_kv"),  dim(sizes, "d_ff"),   dim(sizes, "vocab")};
  Graph& g = model.graph;
  const Tensor inputs = g.input("inputs", {d.batch, d.length}, DType::kI32);
  const Tensor targets = g.input("targets", {d.batch, d.length}, DType::kI32);

  const Tensor positions = g.variable("positions", {d.length, d.d_model}, init::normal(0.02));
  Tensor x = nn::embedding(inputs, d.vocab, d.d_model, "embedding", init::normal(0.02)) + positions;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) {
    const auto scope = g.scope("layer_" + std::to_string(i));
    x = decoder_layer(x, d);
  }
  x = nn::layer_norm(x, d.d_model, {.name = "final_norm"});
  const Tensor logits =
      nn::dense(x, {d.vocab}, {.reduced = {d.d_model}, .bias = false, .name = "logits"}).named("logits");
  const Tensor loss = mean(cross_entropy(logits, targets, d.vocab)).named("loss");

  model.options.fetch = {loss};
  model.options.update = optim::Adam(loss, g.variables()).updates();
}

}  // namespace weft::models
