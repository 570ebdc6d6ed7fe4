// Every setting of a Config, declared once: reading, writing, checking names and docs/config.md all go over this list.
#pragma once

#include <string>
#include <vector>

#include "weft/config.h"

namespace weft::train {

// visit(key, field, one line of explanation); keys are "section.name", in the order of docs/config.md. The field of a
// setting of [model] is the Setting. If visit() sets the kind, the settings of that kind follow.
template <class Visit>
void each_model_setting(ModelConfig& m, const Visit& visit) {
  const auto kind = [&m] { return m->kind(); };
  Setting first{"kind", Choice{task_kinds(), kind, [&m](const std::string& word) { m.set_kind(word); }}, "what it is",
                kIdentity};
  visit("model.kind", first, first.doc.c_str());
  for (Setting& setting : m.task().settings()) visit("model." + setting.name, setting, setting.doc.c_str());
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
  visit("mesh.wire", c.mesh.wire, "threads, mpi or nccl; \"\": mpi under mpirun or srun, else threads");
  visit("mesh.device", c.mesh.device, "cpu, reference, cuda or xla; weft doctor says which can be used");
  visit("mesh.plugin", c.mesh.plugin, "of device xla: the plugin's shared library; \"\": the variable WEFT_PLUGIN");
  visit("mesh.nondeterministic", c.mesh.nondeterministic,
        "of device cuda: faster sums, whose roundings differ from run to run");
  visit("mesh.workers", c.mesh.workers, "threads of each processor; 0: the cores over the processors");
  visit("mesh.memory", c.mesh.memory, "most on each processor, as \"2GiB\", by recomputation; \"\": any");

  visit("run.out", c.run.out, "folder of checkpoints and metrics; \"\": runs/<name>");
  visit("run.steps", c.run.steps, "in all, including resumed runs; 0: a checkpoint of the first weights");
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
  visit("run.deadline", c.run.deadline, "seconds that a processor waits for other processors");

  decode::Options& d = c.decode;
  visit("decode.beams", d.beams, "1: greedy or sampled");
  visit("decode.alpha", d.alpha, "of the length penalty ((5 + length) / 6)^alpha");
  visit("decode.temperature", d.temperature, "0: the likeliest token");
  visit("decode.top_k", d.top_k, "draw among this many tokens; 0: all");
  visit("decode.top_p", d.top_p, "draw among the likeliest tokens of this probability in all");
  visit("decode.max_length", d.max_length, "most tokens, prompt counted");
  visit("decode.max_tokens", d.max_tokens, "most tokens that are generated; 0: up to max_length");
  visit("decode.n_best", d.n_best, "texts for each prompt, with beams");
  visit("decode.early_stop", d.early_stop, "the search ends once nothing better can be found");
  visit("decode.never_end", d.never_end, "the end of sequence gets no probability");
  using decode::Weights;
  Choice weights = choice(d.weights, {{"f32", Weights::kF32}, {"bf16", Weights::kBF16}, {"int8", Weights::kI8}});
  visit("decode.weights", weights, "what products multiply with: the weights, or rounded copies (docs/decoding.md)");
  visit("decode.stop", c.decode.stop, "texts: a text ends before the first of them that it contains");
  visit("decode.stop_tokens", d.stop_tokens, "ids that end a text, like the end of sequence");
  visit("decode.min_tokens", d.min_tokens, "no text ends before it has this many tokens");
  visit("decode.repetition_penalty", d.repetition_penalty,
        "above 1: tokens that the row has become less likely; 1: no change");
  visit("decode.no_repeat_ngram", d.no_repeat_ngram, "no run of so many tokens occurs twice in a row; 0: any may");
  visit("decode.seed", d.seed, "of what is drawn, besides run.seed");
  visit("decode.batch", c.decode.batch, "rows that are decoded together; 0: as many as pay and fit in decode.memory");
  visit("decode.memory", c.decode.memory, "most on each processor, as \"2GiB\"; \"\": what is free");
}

// Settings that give weights and optimizer state their meaning: under another value the shapes may be the same, but the
// numbers make no sense. Of data.vocabulary it is the contents that count. A run goes on, and is used, under its own values
// of them (train/identity.h).
std::vector<std::string> identity_keys(const Config& config);

}  // namespace weft::train
