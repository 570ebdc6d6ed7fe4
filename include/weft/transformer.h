// Transformers: the decoder-only language model, the encoder-decoder and the masked-language encoder, as graphs of the
// public functions. One set of options says what a model is; how it is trained, scored or decoded are graphs over the
// same variables, which a session shares by name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "weft/graph.h"
#include "weft/session.h"

namespace weft::models {

enum class Kind { kLanguageModel, kEncoderDecoder, kEncoder };
enum class Norm { kRms, kLayer, kScale };
// kRelative*: T5's buckets, with a table for every layer, one for all layers of a stack, or made from the queries.
enum class Positions { kNone, kLearned, kSinusoid, kRotary, kRelative, kRelativeShared, kRelativeContextual };

// Dims: batch, length (of targets), inputs_length (of an encoder), memory_length, d_model, heads, query_heads, d_kv,
// d_ff, vocab, max_length, buckets.
struct TransformerOptions {
  Kind kind = Kind::kLanguageModel;
  std::int64_t vocab = 32768, vocab_divisor = 128;  // the dim is vocab rounded up; ids beyond take part in the softmax
  std::int64_t d_model = 512, heads = 8, d_kv = 64, d_ff = 2048, layers = 6;
  std::int64_t decoder_layers = 0;  // of an encoder-decoder; 0: as many as layers
  std::int64_t memory_heads = 0;    // heads of keys and values: 0 all, 1 multi-query (no dim), else a divisor of heads
  std::int64_t max_length = 512;    // rows of a learned table of positions
  std::int64_t buckets = 32, max_distance = 128;  // of relative positions
  Norm norm = Norm::kRms;
  bool norm_bias = true;  // of kLayer
  double norm_epsilon = 1e-6;
  Positions positions = Positions::kLearned;
  double rotary_base = 10000;
  std::vector<std::string> activation = {"relu"};  // two or more: the product of as many layers, as GEGLU and SwiGLU
  bool ff_bias = false;
  bool tied = false;             // the logits' table is the embedding's, times d_model^-1/2
  bool shared_embedding = true;  // of encoder and decoder
  bool shared_kv = false;
  bool fold_scaling = false;               // 1/sqrt(d_kv) is in the first queries' kernel, not in the scores
  std::optional<double> extra_logit = {};  // one more class of every attention's softmax, dropped afterwards
  bool prefix = false;  // a language model whose inputs part (up to the end-of-sequence) sees all of itself
  double dropout = 0;
  bool dropout_along_length = false;  // one draw for all positions
  double attention_dropout = 0;       // of the attention weights; it and extra_logit make whole scores be stored
  double label_smoothing = 0, z_loss = 0;
  std::optional<double> loss_denominator = {};  // else the number of positions, padding counted
  bool loss_per_token = false;                  // the denominator is the number of targets that count
  bool loss_on_targets_only = false;            // with prefix: positions of the inputs part have no loss
  bool recompute = false;                       // each layer is computed again in the backward pass
  std::int64_t loss_chunks = 1;
  std::optional<Init> init = {};  // of kernels and tables; by default each has its own
  DType stored = DType::kF32, activations = DType::kF32;
  std::optional<DType> slice = {};  // what the optimizer updates; by default as stored
};

// UserError, with the option's name, if they do not make a model.
void check(const TransformerOptions& options);
// The number of weights, without building anything.
std::int64_t weights(const TransformerOptions& options);
std::int64_t padded_vocab(const TransformerOptions& options);

// What a batch is. A feature is i32 [batch, length] (an encoder-decoder's inputs: [batch, inputs_length]): token 0 is
// padding, 1 ends a sequence, a negative target is read as the token -target and has no loss. Padding is hidden from
// tokens, but not in a language model that is neither packed nor has a prefix: there it comes after them.
struct BatchSizes {
  std::int64_t batch = 8, length = 128, inputs_length = 0;  // inputs_length: of an encoder-decoder
  bool packed = false;  // with targets_segments (1, 2, …; 0 padding) and targets_positions, and so for inputs
};

// Graphs that see whole sequences.
struct SequenceGraph {
  Graph graph;
  // By name: "targets", and where they apply "inputs", "<feature>_segments", "<feature>_positions".
  std::map<std::string, Tensor> features;
  Tensor loss;    // f32: of training
  Tensor logits;  // [batch length vocab]; empty in a graph for training
  // Of scoring: sums over the counted targets of a row, f32 [batch]: -log p, their number, those guessed right.
  Tensor negative_log_likelihood, tokens, correct;
  // Of scoring packed rows: f32 [batch length], 2 * segment + 1 of a counted target that was guessed right, 2 * segment of
  // one that was not, 0 of a target that does not count. Empty if rows are examples.
  Tensor outcomes;
};

// With dropout, label smoothing and z-loss; the batch in `microbatches` parts, one after another.
SequenceGraph training_graph(const TransformerOptions& options, const BatchSizes& sizes, std::int64_t microbatches = 1,
                             Site site = Site::current());
// Without them.
SequenceGraph scoring_graph(const TransformerOptions& options, const BatchSizes& sizes, Site site = Site::current());

// Decoding: `prefill` reads what is given and fills the caches, `step` adds one position. Both keep their caches in
// variables called "cache/…", so that they are two executables of one session, compiled under one layout (whose rules
// for length and inputs_length end with '?': a step has neither). Without beams a step writes its caches in place.
struct DecodeSizes {
  std::int64_t batch = 1, beams = 1;
  std::int64_t length = 128;       // of the caches: the most positions
  std::int64_t prompt_length = 0;  // of what prefill reads, at most `length`; 0: no prefill of targets
  std::int64_t inputs_length = 0;  // of an encoder-decoder
};

// Rows may be of unlike lengths: zeros follow, and steps begin at the end of the shortest.
struct PrefillGraph {
  Graph graph;
  Tensor inputs;    // i32 [batch inputs_length], of an encoder-decoder
  Tensor targets;   // i32 [batch length=prompt_length]: positions 0, 1, …, for all beams; empty if there is no prompt
  Updates updates;  // none if there is nothing to read
};

struct StepGraph {
  Graph graph;
  Tensor tokens;    // i32 [batch beams]: the target at position - 1; 0 at position 0
  Tensor position;  // i32 scalar
  Tensor parents;   // i32 [batch beams]: the beam whose caches this one goes on from; empty if beams is 1
  Tensor logits;    // f32 [batch beams vocab], of the target at `position`
  Updates updates;
};

// UserError for an encoder, which does not decode, and for a prompt longer than the caches.
PrefillGraph prefill_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site = Site::current());
StepGraph step_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site = Site::current());

}  // namespace weft::models
