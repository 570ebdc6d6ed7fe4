// Transformers: the decoder-only language model, the encoder-decoder and the masked-language encoder, as graphs of the
// public functions. TransformerOptions describes a model. Training, scoring and decoding are separate graphs over the
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
// kRelative*: T5's buckets. kRelative has a table for every layer, kRelativeShared a table for all layers of a stack;
// kRelativeContextual computes the table from the queries.
enum class Positions { kNone, kLearned, kSinusoid, kRotary, kRelative, kRelativeShared, kRelativeContextual };

// Dims: batch, length (of targets), inputs_length (of an encoder), memory_length, d_model, heads, query_heads, d_kv,
// d_ff, vocab, max_length, buckets.
struct TransformerOptions {
  Kind kind = Kind::kLanguageModel;
  // The dim is vocab, rounded up to a multiple of vocab_divisor; the additional ids take part in the softmax.
  std::int64_t vocab = 32768, vocab_divisor = 128;
  std::int64_t d_model = 512, heads = 8, d_kv = 64, d_ff = 2048, layers = 6;
  std::int64_t decoder_layers = 0;  // of an encoder-decoder; 0: the same as layers
  std::int64_t memory_heads = 0;  // heads of keys and values: 0: heads, 1: multi-query (no dim), n: a divisor of heads
  std::int64_t max_length = 512;  // rows of the table of learned positions
  std::int64_t buckets = 32, max_distance = 128;  // of relative positions
  Norm norm = Norm::kRms;
  bool norm_bias = true;  // of kLayer
  double norm_epsilon = 1e-6;
  Positions positions = Positions::kLearned;
  double rotary_base = 10000;
  std::vector<std::string> activation = {"relu"};  // several: the product of a layer for each, like GEGLU and SwiGLU
  bool ff_bias = false;
  bool attention_bias = false;   // of the projections to q, k and v and of the output projection
  bool tied = false;             // logits use the table of the embedding
  bool tied_scale = true;        // of tied: the hidden values are multiplied by d_model^-1/2 first
  bool shared_embedding = true;  // encoder and decoder have one embedding
  bool shared_kv = false;
  bool fold_scaling = false;               // the initial kernel of q has the factor 1/sqrt(d_kv), the scores do not
  std::optional<double> extra_logit = {};  // an additional class in the softmax of attention, dropped afterwards
  bool prefix = false;  // a language model in which the positions of the inputs part (up to its end) see each other
  double dropout = 0;
  bool dropout_along_length = false;  // all positions share a draw
  double attention_dropout = 0;       // of the attention weights; with it or extra_logit the scores are stored
  double label_smoothing = 0, z_loss = 0;
  std::optional<double> loss_denominator = {};  // default: the number of positions, including padding
  bool loss_per_token = false;                  // the denominator is the number of targets that have a loss
  bool loss_on_targets_only = false;            // with prefix: positions of the inputs part have no loss
  bool recompute = false;                       // the backward pass recomputes each layer
  std::int64_t loss_chunks = 1;                 // see nn::ProjectedLossOptions::chunks
  std::optional<Init> init = {};                // for all kernels and tables; default: a separate rule for each kind
  DType stored = DType::kF32, activations = DType::kF32;
  std::optional<DType> slice = {};  // the dtype that the optimizer updates; default: stored
};

// UserError, with the name of the option, for options that contradict each other.
void check(const TransformerOptions& options);
// The number of weights, without building anything.
std::int64_t weights(const TransformerOptions& options);
std::int64_t padded_vocab(const TransformerOptions& options);

// What a graph multiplies with. kTrained: the model's weights. Otherwise copies of the kernels in variables "copy/…": in the
// dtype of the activations, in bf16, or in i8 with a scale for every output and every row of activations.
enum class DecodeWeights { kTrained, kCopied, kBF16, kI8 };

// The order of copies that an engine multiplies with fastest: panels of `lanes` outputs.
struct KernelPanels {
  std::int64_t lanes = 0;  // 0: no panels; the numbers of one output lie side by side
  std::map<std::string, std::int64_t> parts =
      {};  // into how many parts the layout splits a dim; a dim that is absent: 1
};

// Makes the copy of a kernel that a graph reads: compile the updates and sums of all copies by themselves, and run them
// whenever weights have changed.
struct WeightCopy {
  std::string kernel;
  Updates updates;
  Tensor sum;  // of the kernel's magnitudes, a scalar, which shows NaN and infinity
};
using WeightCopies = std::vector<WeightCopy>;

// The sizes of a batch. A feature is i32 [batch, length]; the inputs of an encoder-decoder are [batch, inputs_length].
// Token 0 is padding, 1 ends a sequence. A negative target t is read as the token -t and has no loss. Tokens do not see
// padding. In a language model that is neither packed nor has a prefix, padding comes last, so no mask is needed.
struct BatchSizes {
  std::int64_t batch = 8, length = 128, inputs_length = 0;  // inputs_length: of an encoder-decoder
  bool packed = false;  // each feature also has "_segments" (1, 2, …; 0 is padding) and "_positions"
};

// A graph over complete sequences.
struct SequenceGraph {
  Graph graph;
  // By name: "targets" and, if the model or the batch has them, "inputs", "<feature>_segments", "<feature>_positions".
  std::map<std::string, Tensor> features;
  Tensor loss;    // f32; empty in a scoring graph
  Tensor logits;  // [batch length vocab]; empty in a training graph
  // Of a scoring graph, f32 [batch], over the targets of a row that have a loss: the sum of -log p, the number of
  // targets, and the number of targets that have the largest logit.
  Tensor negative_log_likelihood, tokens, correct;
  // Of a scoring graph for packed rows, f32 [batch length]: 2 * segment + 1 for a correct target, 2 * segment for a wrong
  // target, 0 for a target without a loss. Empty if a row is one example.
  Tensor outcomes;
  WeightCopies copies;  // of a scoring graph
};

// The graph for training, with dropout, label smoothing and z-loss. The batch runs in `microbatches` parts, one after
// another.
SequenceGraph training_graph(const TransformerOptions& options, const BatchSizes& sizes, std::int64_t microbatches = 1,
                             Site site = Site::current());
// The graph for scoring, without dropout, label smoothing and z-loss.
SequenceGraph scoring_graph(const TransformerOptions& options, const BatchSizes& sizes,
                            DecodeWeights weights = DecodeWeights::kTrained, Site site = Site::current());

// Decoding: the prefill graph reads prompts and fills the caches; the step graph adds one position to each row. The caches
// are variables "cache/…". Compile both graphs in one session under one layout. Its rules for length and inputs_length end
// with '?', because a step has neither dim. A step writes one position of its caches in place and reads only positions
// that were written. A layout must not split `beams`: UserError at compile, if there are several.
struct DecodeSizes {
  std::int64_t batch = 1, beams = 1;
  std::int64_t length = 128;       // of the caches: the largest number of positions
  std::int64_t prompt_length = 0;  // of the prompts that prefill reads, at most `length`; 0: prefill reads none
  std::int64_t inputs_length = 0;  // of an encoder-decoder: of the caches of its inputs
  std::int64_t prompts = 0;        // the rows that one prefill reads, into any rows of the batch; 0: all rows, in order
  std::int64_t inputs_read = 0;    // of the inputs that prefill reads, at most inputs_length; 0: inputs_length
  DecodeWeights weights = DecodeWeights::kTrained;
  KernelPanels panels = {};  // of the copies, where sizes divide
  // Of a language model: the positions that all rows begin with, which prefix_graph reads once. Prefill, which then has
  // `prompts`, copies their keys and values into its slots; its targets are at the positions after them. 0: none.
  std::int64_t prefix_length = 0;
  bool feeds_itself = false;  // a step's tokens and position are variables, "cache/tokens", which the graph's user updates
};

// Rows may have different lengths, filled up with zeros. The steps of a row begin at the end of its prompt or before it.
struct PrefillGraph {
  Graph graph;
  Tensor slots;   // i32 [batch=prompts]: the row of the batch that each row goes to, none if it is out of range; empty
                  // if prefill reads all rows
  Tensor inputs;  // i32 [batch=prompts inputs_length=inputs_read], of an encoder-decoder
  Tensor targets;  // i32 [batch=prompts length=prompt_length]: positions 0, 1, …, for all beams; empty without a prompt
  Updates updates;  // empty if there is nothing to read
  WeightCopies copies;
};

struct StepGraph {
  Graph graph;
  Tensor tokens;    // i32 [batch beams]: the target at position - 1; 0 at position 0
  Tensor position;  // i32 [batch]: where each row is; inputs, or variables if the step feeds itself
  Tensor parents;   // i32 [batch beams]: the beam whose caches the beam continues; empty if beams is 1
  Tensor logits;    // f32 [batch beams vocab], of the target at `position`
  Updates updates;
  WeightCopies copies;  // prefill reads the same copies
};

// Reads the positions that all rows begin with, of DecodeSizes::prefix_length, into variables "cache/prefix/…".
struct PrefixGraph {
  Graph graph;
  Tensor targets;  // i32 [length=prefix_length]
  Updates updates;
};
PrefixGraph prefix_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site = Site::current());

// UserError for an encoder, which does not decode, and for a prompt longer than the caches.
PrefillGraph prefill_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site = Site::current());
StepGraph step_graph(const TransformerOptions& options, const DecodeSizes& sizes, Site site = Site::current());

}  // namespace weft::models
