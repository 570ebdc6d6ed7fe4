// The model called "transformer", which reads and guesses given tokens: a language model's layers and loss alone.
#include "models/catalog.h"
#include "models/transformer/network.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::models {

LanguageModel language_model(const Sizes& given, const LanguageModelOptions& options) {
  const Sizes sizes = complete_sizes("transformer", given);
  const Dim batch = dim(sizes, "batch"), length = dim(sizes, "length");
  TransformerOptions o{.vocab = sizes.at("vocab"),
                       .vocab_divisor = 1,
                       .d_model = sizes.at("d_model"),
                       .heads = sizes.at("heads"),
                       .d_kv = sizes.at("d_kv"),
                       .d_ff = sizes.at("d_ff"),
                       .layers = sizes.at("layers")};
  o.norm = options.design.norm;
  o.norm_epsilon = options.design.norm_epsilon;
  o.activation = {options.design.activation};
  o.ff_bias = o.attention_bias = options.design.biases;
  o.tied = options.design.tied;
  o.tied_scale = false;
  o.positions = Positions::kNone;  // its table has a row for each place, and is split with them
  o.init = options.init;
  o.loss_chunks = options.loss_chunks;
  o.activations = options.activations.value_or(options.design.activations);
  const Settings settings{o, true};

  LanguageModel lm;
  Graph& g = lm.graph;
  lm.inputs = g.input("inputs", {batch, length}, DType::kI32);
  lm.targets = g.input("targets", {batch, length}, DType::kI32);
  Network network(g, settings);
  const Tensor positions = settings.table(g, "positions", {length, settings.d_model()});
  const auto loss_of = [&](const Tensors& part) {
    const Tensor x = gather(network.embedding(""), part[0], settings.vocab()) + positions;
    const Tensor hidden = stack(cast(x, o.activations), settings, network.pass_over(length, {}, true), o.layers, "");
    return network.loss(hidden, part[1], hidden.shape()[0], {});
  };
  const Tensors whole = {lm.inputs, lm.targets};
  lm.loss = options.microbatches == 1 ? loss_of(whole) : microbatch_loss(whole, batch, options.microbatches, loss_of);
  lm.loss = lm.loss.named("loss");
  return lm;
}

void build_language_model(Model& model, const Sizes& sizes, const LanguageModelDesign& design) {
  const LanguageModel lm = language_model(sizes, {.design = design});
  model.graph = lm.graph;
  model.options.fetch = {lm.loss};
  model.options.update = optim::Adam(lm.loss, model.graph.variables(), design.adam).updates();
}

void build_transformer(Model& model, const Sizes& sizes) { build_language_model(model, sizes, {}); }

}  // namespace weft::models
