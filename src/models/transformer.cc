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

// What the parts of one model share.
struct Maker {
  Dims d;
  std::optional<Init> init;  // of kernels and tables; none: their own

  Tensor dense(const Tensor& x, const Dim& made, const Dim& reduced, const std::string& name,
               const nn::Activation& activation = {}, Site site = Site::current()) const {
    return nn::dense(x, {made},
                     {.reduced = {reduced}, .bias = false, .activation = activation, .kernel_init = init, .name = name},
                     site);
  }

  Tensor feed_forward(const Tensor& x) const {
    Graph g(x.graph());
    const auto scope = g.scope("feed_forward");
    const auto rectify = [](const Tensor& t, Site site) { return relu(t, site); };
    const Tensor h = dense(x, d.d_ff, d.d_model, "in", rectify);
    return dense(h, d.d_model, d.d_ff, "out");
  }

  Tensor layer(const Tensor& x) const {
    const Tensor a = nn::layer_norm(x, d.d_model, {.name = "attention_norm"});
    const Tensor mixed =
        x + nn::self_attention(a, d.length, d.d_model, d.heads, d.d_kv, {.causal = true, .kernel_init = init});
    return mixed + feed_forward(nn::layer_norm(mixed, d.d_model, {.name = "feed_forward_norm"}));
  }
};

}  // namespace

LanguageModel language_model(const Sizes& given, const LanguageModelOptions& options) {
  const Sizes sizes = complete_sizes("transformer", given);
  const Dims d{dim(sizes, "batch"), dim(sizes, "length"), dim(sizes, "d_model"), dim(sizes, "heads"),
               dim(sizes, "d_kv"),  dim(sizes, "d_ff"),   dim(sizes, "vocab")};
  const Maker maker{d, options.init};
  const Init table = options.init.value_or(init::normal(0.02));
  LanguageModel lm;
  Graph& g = lm.graph;
  lm.inputs = g.input("inputs", {d.batch, d.length}, DType::kI32);
  lm.targets = g.input("targets", {d.batch, d.length}, DType::kI32);

  const Tensor positions = g.variable("positions", {d.length, d.d_model}, table);
  Tensor x = nn::embedding(lm.inputs, d.vocab, d.d_model, "embedding", table) + positions;
  if (options.activation != DType::kF32) x = cast(x, options.activation);
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) {
    const auto scope = g.scope("layer_" + std::to_string(i));
    x = maker.layer(x);
  }
  x = nn::layer_norm(x, d.d_model, {.name = "final_norm"});
  lm.loss = nn::projected_cross_entropy(x, lm.targets, d.batch, d.d_model, d.vocab,
                                        {.chunks = options.loss_chunks, .kernel_init = options.init})
                .named("loss");
  return lm;
}

void build_transformer(Model& model, const Sizes& sizes) {
  const LanguageModel lm = language_model(sizes);
  model.graph = lm.graph;
  model.options.fetch = {lm.loss};
  model.options.update = optim::Adam(lm.loss, model.graph.variables()).updates();
}

}  // namespace weft::models
