// Every setting of a Config, declared once: reading, writing, checking names and docs/config.md all go over this list.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/config.h"

namespace weft::train {

// The words of a setting that is a choice.
template <class T>
using Words = std::vector<std::pair<std::string, T>>;

inline const Words<models::Kind>& words_of(models::Kind) {
  static const Words<models::Kind> kWords = {{"lm", models::Kind::kLanguageModel},
                                             {"encoder_decoder", models::Kind::kEncoderDecoder},
                                             {"encoder", models::Kind::kEncoder}};
  return kWords;
}
inline const Words<models::Norm>& words_of(models::Norm) {
  static const Words<models::Norm> kWords = {
      {"rms", models::Norm::kRms}, {"layer", models::Norm::kLayer}, {"scale", models::Norm::kScale}};
  return kWords;
}
inline const Words<models::Positions>& words_of(models::Positions) {
  using P = models::Positions;
  static const Words<P> kWords = {{"none", P::kNone},
                                  {"learned", P::kLearned},
                                  {"sinusoid", P::kSinusoid},
                                  {"rotary", P::kRotary},
                                  {"relative", P::kRelative},
                                  {"relative_shared", P::kRelativeShared},
                                  {"relative_contextual", P::kRelativeContextual}};
  return kWords;
}
inline const Words<DType>& words_of(DType) {
  static const Words<DType> kWords = {{"f32", DType::kF32}, {"bf16", DType::kBF16}};
  return kWords;
}

// visit(key, field, one line of explanation); keys are "section.name", in the order of docs/config.md.
template <class Visit>
void each_model_setting(models::TransformerOptions& m, const Visit& visit) {
  visit("model.kind", m.kind, "what it is");
  visit("model.vocab", m.vocab, "tokens; 0: as many as data.vocabulary has");
  visit("model.vocab_divisor", m.vocab_divisor, "the vocab dim is rounded up to a multiple of this");
  visit("model.d_model", m.d_model, "width between the layers");
  visit("model.heads", m.heads, "of every attention");
  visit("model.memory_heads", m.memory_heads,
        "heads of keys and values: 0 all, 1 multi-query, else a divisor of heads");
  visit("model.d_kv", m.d_kv, "width of a head");
  visit("model.d_ff", m.d_ff, "width inside the feed-forward nets");
  visit("model.layers", m.layers, "of the model, or of its encoder");
  visit("model.decoder_layers", m.decoder_layers, "of an encoder_decoder's decoder; 0: as many as layers");
  visit("model.norm", m.norm, "before every sublayer");
  visit("model.norm_bias", m.norm_bias, "whether a layer norm has a bias");
  visit("model.norm_epsilon", m.norm_epsilon, "added to the mean square");
  visit("model.positions", m.positions, "how the model knows them");
  visit("model.max_length", m.max_length, "rows of the learned table of positions");
  visit("model.buckets", m.buckets, "of relative positions");
  visit("model.max_distance", m.max_distance, "beyond it, relative positions share a bucket");
  visit("model.rotary_base", m.rotary_base, "the longest wave of rotary positions");
  visit("model.activation", m.activation, "of the feed-forward nets; two are multiplied, as [\"gelu\", \"linear\"]");
  visit("model.ff_bias", m.ff_bias, "whether feed-forward nets have biases");
  visit("model.tied", m.tied, "the logits' table is the embedding's");
  visit("model.shared_embedding", m.shared_embedding, "encoder and decoder have one embedding");
  visit("model.shared_kv", m.shared_kv, "keys and values are the same");
  visit("model.fold_scaling", m.fold_scaling, "1/sqrt(d_kv) lies in the queries' first kernel, not in the scores");
  visit("model.extra_logit", m.extra_logit, "one more class of every attention's softmax");
  visit("model.prefix", m.prefix, "the part up to the end-of-sequence token sees all of itself");
  visit("model.dropout", m.dropout, "probability that an element is dropped, after every sublayer");
  visit("model.dropout_along_length", m.dropout_along_length, "one draw for all positions");
  visit("model.attention_dropout", m.attention_dropout, "the same, in the attentions");
  visit("model.label_smoothing", m.label_smoothing, "how much of a target is spread over all tokens");
  visit("model.z_loss", m.z_loss, "times log(Z)^2, added to the loss");
  visit("model.loss_denominator", m.loss_denominator, "what the summed loss is divided by, in place of the positions");
  visit("model.loss_per_token", m.loss_per_token, "the denominator is the number of targets that count");
  visit("model.loss_on_targets_only", m.loss_on_targets_only, "with prefix: inputs have no loss");
  visit("model.loss_chunks", m.loss_chunks, "parts of the batch whose logits exist at a time");
  visit("model.recompute", m.recompute, "layers are computed again in the backward pass, to save memory");
  visit("model.stored", m.stored, "dtype of the variables");
  visit("model.slice", m.slice, "dtype in which the optimizer updates them; by default as stored");
  visit("model.activations", m.activations, "dtype of what is between them");
}

template <class Visit>
void each_optimizer_setting(Config& c, const Visit& visit) {
  optim::OptimizerOptions& o = c.optimizer;
  visit("optimizer.name", o.name, "sgd, momentum, adam, adamw (adam with weight_decay 0.01) or adafactor");
  visit("optimizer.rate", c.rate, "the learning rate: what the schedule is multiplied by");
  visit("optimizer.schedule", c.schedule,
        "how the rate changes, a product: \"linear_warmup 100 * cosine\" (docs/optimizers.md)");
  visit("optimizer.clip_norm", o.clip_norm, "most of the norm of all gradients together; 0: any");
  visit("optimizer.weight_decay", o.weight_decay, "w -= rate * decay * w besides");
  visit("optimizer.exclude_from_weight_decay", o.exclude_from_weight_decay,
        "of adam and adamw: patterns of variables' names");
  visit("optimizer.rules", o.rules,
        "by name, the first that fits: \"PATTERN: rate 0.1, decay 0\", \"PATTERN: frozen\"");
  visit("optimizer.momentum", o.momentum, "of momentum");
  visit("optimizer.beta1", o.beta1, "of adam, adamw and adafactor");
  visit("optimizer.beta2", o.beta2, "of adam and adamw");
  visit("optimizer.epsilon", o.epsilon, "of adam and adamw");
  visit("optimizer.bias_correction", o.bias_correction, "of adam and adamw");
  visit("optimizer.factored", o.factored, "of adafactor: second moments from row and column means");
  visit("optimizer.multiply_by_parameter_scale", o.multiply_by_parameter_scale,
        "of adafactor: steps are relative to the weights' size");
  visit("optimizer.min_dim_size_to_factor", o.min_dim_size_to_factor, "of adafactor");
  visit("optimizer.clipping_threshold", o.clipping_threshold, "of adafactor, of the steps' root mean square; 0: none");
  visit("optimizer.decay_exponent", o.decay_exponent, "of adafactor: rho = 1 - t^-exponent");
  visit("optimizer.decay_beta2", o.decay_beta2, "of adafactor: Adam's decay in its place");
  visit("optimizer.step_offset", o.step_offset, "of adafactor: t counts from here");
  visit("optimizer.epsilon1", o.epsilon1, "of adafactor: added to squares");
  visit("optimizer.epsilon2", o.epsilon2, "of adafactor: the least size of a weight");
  visit("optimizer.exclude_from_parameter_scale", o.exclude_from_parameter_scale, "of adafactor: pieces of names");
}

template <class Visit>
void each_setting(Config& c, const Visit& visit) {
  visit("name", c.name, "of the run; its folder is runs/<name>");
  each_model_setting(c.model, visit);

  visit("data.train", c.data.train, "files; of parallel text: the inputs', then the targets'");
  visit("data.dev", c.data.dev, "the same, for evaluation");
  visit("data.format", c.data.format,
        "text, documents, lines, tsv, pairs or tokens (docs/data.md); \"\": by the files' endings");
  visit("data.vocabulary", c.data.vocabulary, "\"bytes\" or a SentencePiece .model");
  visit("data.pack", c.data.pack, "several short examples share a row");
  visit("data.shuffle", c.data.shuffle, "by run.seed, anew in every epoch");
  visit("data.mask", c.data.mask, "of an encoder: the share of tokens that are masked, which it learns to guess");
  visit("data.mask_id", c.data.mask_id, "of an encoder: the token that stands for a masked one; 2 is unknown");

  visit("batch.sequences", c.batch.sequences, "rows of a batch; this or tokens; both 0: 8 rows");
  visit("batch.tokens", c.batch.tokens, "targets of a batch, padding counted: rows * length");
  visit("batch.length", c.batch.length, "targets of a row");
  visit("batch.inputs_length", c.batch.inputs_length, "of an encoder_decoder: inputs of a row");
  visit("batch.microbatches", c.batch.microbatches, "parts that are done one after another, to save memory");

  each_optimizer_setting(c, visit);

  visit("mesh.mesh", c.mesh.mesh, "axes and sizes, as \"data:2 model:2\"; \"\": one processor");
  visit("mesh.layout", c.mesh.layout, "which dim is split over which axis");
  visit("mesh.store", c.mesh.store, "how variables are stored beyond the layout, as \"*:data\"");
  visit("mesh.store_level", c.mesh.store_level, "1: optimizer state; 2: and gradients; 3: and parameters");
  visit("mesh.wire", c.mesh.wire, "threads or mpi; \"\": mpi under mpirun or srun, else threads");
  visit("mesh.device", c.mesh.device, "cpu or reference");
  visit("mesh.workers", c.mesh.workers, "threads of each processor; 0: the cores over the processors");
  visit("mesh.memory", c.mesh.memory, "most on each processor, as \"2GiB\", by recomputation; \"\": any");

  visit("run.out", c.run.out, "folder of checkpoints and metrics; \"\": runs/<name>");
  visit("run.steps", c.run.steps, "in all, those of resumed runs counted; 0: a checkpoint of the first weights");
  visit("run.seed", c.run.seed, "of first weights, dropout and the order of the data");
  visit("run.log_every", c.run.log_every, "steps between lines of metrics");
  visit("run.eval_every", c.run.eval_every, "steps between evaluations on data.dev; 0: at the end only");
  visit("run.eval_batches", c.run.eval_batches, "of an evaluation; 0: all of data.dev");
  visit("run.checkpoint_every", c.run.checkpoint_every,
        "steps between checkpoints; 0: by run.checkpoint_minutes and at the end only");
  visit("run.checkpoint_minutes", c.run.checkpoint_minutes,
        "most minutes between checkpoints, by the clock of process 0; 0: no limit");
  visit("run.keep", c.run.keep, "checkpoints that stay");
  visit("run.f64", c.run.f64, "all floats become f64, on device reference: to prove layouts equal");
  visit("run.check_ids", c.run.check_ids, "a run fails at an id that the embedding or the positions do not have");
  visit("run.deadline", c.run.deadline, "seconds that a processor waits for the others");

  decode::Options& d = c.decode;
  visit("decode.beams", d.beams, "1: greedy or sampled");
  visit("decode.alpha", d.alpha, "of the length penalty ((5 + length) / 6)^alpha");
  visit("decode.temperature", d.temperature, "0: the likeliest token");
  visit("decode.top_k", d.top_k, "draw among this many tokens; 0: all");
  visit("decode.top_p", d.top_p, "draw among the likeliest tokens of this probability in all");
  visit("decode.max_length", d.max_length, "most tokens, prompt counted");
  visit("decode.n_best", d.n_best, "texts for each prompt, with beams");
  visit("decode.early_stop", d.early_stop, "the search ends once nothing better can be found");
  visit("decode.never_end", d.never_end, "the end of sequence gets no probability");
  visit("decode.seed", d.seed, "of what is drawn, besides run.seed");
}

// Settings that give weights and optimizer state their meaning: under another value the shapes may be the same, but the
// numbers make no sense. Of data.vocabulary it is the contents that count. A run goes on, and is used, under its own values
// of them (train/identity.h).
inline const std::vector<std::string>& identity_keys() {
  static const std::vector<std::string> kKeys = {
      "model.kind",         "model.norm",        "model.norm_epsilon", "model.positions",        "model.max_distance",
      "model.rotary_base",  "model.activation",  "model.tied",         "model.shared_embedding", "model.shared_kv",
      "model.fold_scaling", "model.extra_logit", "model.prefix",       "data.vocabulary",        "optimizer.name"};
  return kKeys;
}

}  // namespace weft::train
