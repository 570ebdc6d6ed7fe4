// Layers: plain functions of tensors that make their variables in the tensor's graph, on global shapes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "weft/attend.h"
#include "weft/ops.h"

namespace weft::nn {

// A function of one tensor, such as relu or gelu. Empty: none.
using Activation = std::function<Tensor(const Tensor& x, Site site)>;
// linear, relu, leaky_relu, elu, selu, gelu, swish (or silu), tanh, sigmoid or softplus. UserError for other names.
Activation activation(const std::string& name);
std::vector<std::string> activations();

struct DenseOptions {
  Shape reduced = {};  // the dims of x that are summed; by default its last one
  Shape experts = {};  // dims of x along which every index has a kernel and a bias of its own
  bool bias = true;
  Activation activation = {};
  std::optional<Init> kernel_init = {};  // by default variance scaling, 1 / the product of the reduced dims
  VariableOptions variables = {};        // how they are stored; here as in all layers they are seen in x's dtype
  std::string name = "dense";            // the scope of the variables
};

// activation(x kernel + bias), with the dims of x that stay, then `made`. Variables: "kernel" [experts…, reduced…,
// made…] and "bias" [experts…, made…]. A reduced dim that is also made is called "_<name>" in the kernel.
Tensor dense(const Tensor& x, const Shape& made, const DenseOptions& options = {}, Site site = Site::current());

// The product of several dense layers of x, one for each activation (an empty one is linear); their scopes are
// "<name>_0", "<name>_1", … `options.activation` is not used.
Tensor dense_product(const Tensor& x, const Shape& made, const std::vector<Activation>& activations,
                     const DenseOptions& options = {}, Site site = Site::current());

struct LayerNormOptions {
  double epsilon = 1e-6;
  bool bias = true;
  VariableOptions variables = {};
  std::string name = "layer_norm";
};

// (x - mean) / sqrt(mean((x - mean)^2) + epsilon) * scale + bias, means over `dim`. Variables: "scale", "bias" [dim].
Tensor layer_norm(const Tensor& x, const Dim& dim, const LayerNormOptions& options = {}, Site site = Site::current());

struct RmsNormOptions {
  double epsilon = 1e-6;
  bool one_scale = false;  // "scale" is a scalar: scale norm
  VariableOptions variables = {};
  std::string name = "rms_norm";
};

// x / sqrt(mean(x^2) + epsilon) * scale, the mean over `dim`. Variable: "scale" [dim].
Tensor rms_norm(const Tensor& x, const Dim& dim, const RmsNormOptions& options = {}, Site site = Site::current());

struct BatchNormOptions {
  double momentum = 0.9;  // how much of the old moving mean and variance stays in a step
  double epsilon = 1e-5;
  bool training = true;  // false: the moving mean and variance in place of x's own, and no updates
  std::string name = "batch_norm";
};

struct BatchNormResult {
  Tensor y;
  Tensors updates;  // of the moving mean and variance, for compile()
};

// (x - mean) / sqrt(variance + epsilon) * scale + bias; mean and variance are over `joined`, for each index of the other
// dims [rest]. Variables: "scale", "bias", and, not trained, "moving_mean", "moving_variance" [rest].
BatchNormResult batch_norm(const Tensor& x, const Shape& joined, const BatchNormOptions& options = {},
                           Site site = Site::current());

// The rows of a variable `name` [vocab, model] at the ids; an id out of range gives zeros.
Tensor embedding(const Tensor& ids, const Dim& vocab, const Dim& model, const std::string& name = "embedding",
                 const Init& init = init::normal(1), Site site = Site::current());

// --- Positions: whole numbers of any dims ---

// [positions…, model]: the sines, then the cosines, of position * 10000^(-i / (model/2 - 1)), i < model/2.
Tensor sinusoids(const Tensor& positions, const Dim& model, Site site = Site::current());
// x with the pairs (i, i + dim/2) along `dim` turned by the angle position * base^(-2i / dim). Dims of the positions are
// x's.
Tensor rotary(const Tensor& x, const Tensor& positions, const Dim& dim, double base = 10000,
              Site site = Site::current());

struct BucketOptions {
  std::int64_t buckets = 32, max_distance = 128;
  bool both_ways = false;  // half of the buckets is for memory behind the query
  std::int64_t reach = 0;  // no distance is larger
};
// T5's bucket of each distance (place in memory - place of the query): near ones exact, far ones by their logarithm.
Tensor relative_buckets(const Tensor& distances, const BucketOptions& options, Site site = Site::current());

// --- Attention ---

// attend() with a bias alone: softmax over `memory` of (q . k / sqrt(d_kv) + bias), times v. `bias` may be empty.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                 const Tensor& bias = {}, Site site = Site::current());

struct ScoredAttentionOptions {
  AttendOptions attend = {};
  std::optional<double> extra_logit = {};  // one more class of the softmax, dropped afterwards
  double keep = 1;                         // dropout of the weights
  Shape same_draw = {};                    // dims of the weights along which draws are the same
};
// What attend() cannot do, by scores [… length, memory] that are stored, masked, and kept for the backward pass.
Tensor scored_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Dim& memory, const Dim& d_kv,
                        const ScoredAttentionOptions& options, Site site = Site::current());

// Dims of heads: queries have `query`, keys and values those of them in `memory` (all, some or none).
struct Heads {
  Shape query, memory;
  Dim d_kv;
};

struct ProjectionOptions {
  bool shared_kv = false;                // keys and values are the same
  bool fold_scaling = false;             // q starts smaller by sqrt(d_kv), for scores that are not scaled
  std::optional<Init> kernel_init = {};  // by default as dense
  VariableOptions variables = {};
};

struct Projections {
  Tensor q, k, v;
};

// The products of attention, without biases. Of x alone: all three; where they have the same heads they are one product
// with a variable "qkv/kernel" [model, qkv=3, heads…, d_kv], which starts as "q/kernel", "k/kernel" and "v/kernel" would.
Projections project(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options = {},
                    Site site = Site::current());
// Or each by itself: "q/kernel" [model, heads…, d_kv]; "k/kernel" and "v/kernel", or "kv/kernel" if shared.
Tensor project_queries(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options = {},
                       Site site = Site::current());
Projections project_memory(const Tensor& x, const Dim& model, const Heads& heads, const ProjectionOptions& options = {},
                           Site site = Site::current());
// And back: "o/kernel" [heads…, d_kv, model].
Tensor project_back(const Tensor& mixed, const Dim& model, const Heads& heads, const ProjectionOptions& options = {},
                    Site site = Site::current());

struct AttentionOptions {
  bool causal = false;                   // a place sees itself and what is before it
  Tensor bias = {};                      // added to the scores [… length, heads, memory]
  Tensor segments = {};                  // whole numbers [… length]: a place sees those of its own number only
  std::optional<double> scale = {};      // of the scores; by default 1 / sqrt(d_kv)
  std::string memory = "memory_length";  // what `length` is called where it is looked at
  std::optional<Init> kernel_init = {};  // by default as dense
  std::string name = "attention";        // the scope of the variables
};

// Multi-head self-attention along `length` of x [… length, model]; dims as x's. Variables "qkv/kernel" and "o/kernel".
// Where a layout splits `length`, keys and values are gathered.
Tensor self_attention(const Tensor& x, const Dim& length, const Dim& model, const Dim& heads, const Dim& d_kv,
                      const AttentionOptions& options = {}, Site site = Site::current());

struct ProjectedLossOptions {
  std::int64_t chunks = 1;  // logits of one part of `batch` exist at a time; more take less memory and more time
  double z_loss = 0;
  double label_smoothing = 0;  // this much of each target is shared by all classes, which takes one more sweep
  Tensor denominator = {};     // an f32 scalar; by default the number of tokens
  Tensor kernel = {};          // [model, vocab] in any order, in place of a variable
  std::optional<Init> kernel_init = {};
  VariableOptions variables = {};
  std::string name = "logits";  // the scope of the kernel
};

// The sum over all tokens of cross_entropy(hidden kernel, targets, vocab) over the denominator; a target out of range
// has no loss. Loss and derivatives are made together: the logits are written over by their derivatives. Variable
// "kernel" [model, vocab]; `batch` is a dim of hidden and targets.
Tensor projected_cross_entropy(const Tensor& hidden, const Tensor& targets, const Dim& batch, const Dim& model,
                               const Dim& vocab, const ProjectedLossOptions& options = {}, Site site = Site::current());

}  // namespace weft::nn
