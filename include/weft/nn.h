// Layers: plain functions of tensors that create their variables in the tensor's graph, on global shapes.
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

// The product of x and a kernel, summed over the dims that `output` lacks. Empty: einsum.
using Multiply = std::function<Tensor(const Tensor& x, const Tensor& kernel, const Shape& output, Site site)>;

struct DenseOptions {
  DimRefs reduced = {};  // the dims of x to sum; default: its last dim
  DimRefs experts = {};  // dims of x along which every index has a separate kernel and bias
  bool bias = true;
  Activation activation = {};
  std::optional<Init> kernel_init = {};  // default: variance scaling, 1 / the product of the reduced dims
  VariableOptions variables = {};        // how they are stored; every layer reads them in x's dtype
  Multiply multiply = {};
  std::string name = "dense";            // the scope of the variables
};

// activation(x kernel + bias), with the remaining dims of x, then `made`. Variables: "kernel" [experts…, reduced…,
// made…] and "bias" [experts…, made…]. A dim that is both reduced and made is called "_<name>" in the kernel.
Tensor dense(const Tensor& x, const Shape& made, const DenseOptions& options = {}, Site site = Site::current());

// The product of several dense layers of x, one for each activation (an empty activation is linear); their scopes are
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
Tensor layer_norm(const Tensor& x, const DimRef& dim, const LayerNormOptions& options = {},
                  Site site = Site::current());

struct RmsNormOptions {
  double epsilon = 1e-6;
  bool one_scale = false;  // "scale" is a scalar: scale norm
  VariableOptions variables = {};
  std::string name = "rms_norm";
};

// x / sqrt(mean(x^2) + epsilon) * scale, the mean over `dim`. Variable: "scale" [dim].
Tensor rms_norm(const Tensor& x, const DimRef& dim, const RmsNormOptions& options = {}, Site site = Site::current());

struct BatchNormOptions {
  double momentum = 0.9;  // the share of the old moving mean and variance that stays in a step
  double epsilon = 1e-5;
  bool training = true;  // false: uses the moving mean and variance in place of the batch's, and makes no updates
  std::string name = "batch_norm";
};

struct BatchNormResult {
  Tensor y;
  Tensors updates;  // of the moving mean and variance, for compile()
};

// (x - mean) / sqrt(variance + epsilon) * scale + bias; mean and variance are over `joined`, for each index of the
// remaining dims [rest]. Variables: "scale", "bias", and, not trained, "moving_mean", "moving_variance" [rest].
BatchNormResult batch_norm(const Tensor& x, const DimRefs& joined, const BatchNormOptions& options = {},
                           Site site = Site::current());

// The rows of a variable `name` [vocab, model] at the ids; an id out of range gives zeros.
Tensor embedding(const Tensor& ids, const Dim& vocab, const Dim& model, const std::string& name = "embedding",
                 const Init& init = init::normal(1), Site site = Site::current());

// --- Positions: integers with any dims ---

// [positions…, model]: the sines, then the cosines, of position * 10000^(-i / (model/2 - 1)), i < model/2.
Tensor sinusoids(const Tensor& positions, const Dim& model, Site site = Site::current());
// x with the pairs (i, i + dim/2) along `dim` rotated by the angle position * base^(-2i / dim). The positions have dims
// of x.
Tensor rotary(const Tensor& x, const Tensor& positions, const DimRef& dim, double base = 10000,
              Site site = Site::current());

struct BucketOptions {
  std::int64_t buckets = 32, max_distance = 128;
  bool both_ways = false;  // half of the buckets are for memory behind the query
  std::int64_t reach = 0;  // the largest distance that occurs
};
// T5's bucket of each distance (position in memory - position of the query): exact for near positions, logarithmic for
// far positions.
Tensor relative_buckets(const Tensor& distances, const BucketOptions& options, Site site = Site::current());

// --- Attention: projections around attend() of weft/attend.h, and the complete layer ---

// Dims of heads: queries have `query`, keys and values have the part of them in `memory` (all, some or none).
struct Heads {
  Shape query, memory;
  Dim d_kv;
};

struct ProjectionOptions {
  bool shared_kv = false;                // keys and values are the same
  bool bias = false;                     // of all projections: "q/bias" [heads…, d_kv] and so on
  bool fold_scaling = false;             // q starts smaller by sqrt(d_kv), for unscaled scores
  std::optional<Init> kernel_init = {};  // default: like dense
  VariableOptions variables = {};
  Multiply multiply = {};
};

struct Projections {
  Tensor q, k, v;
};

// The projections of attention. All three from x. If they have the same heads, they are one product with a variable
// "qkv/kernel" [model, qkv=3, heads…, d_kv], which is initialized exactly like "q/kernel", "k/kernel" and "v/kernel",
// and a variable "qkv/bias" [qkv=3, heads…, d_kv] if they have biases.
Projections project(const Tensor& x, const DimRef& model, const Heads& heads, const ProjectionOptions& options = {},
                    Site site = Site::current());
// Or separately: "q/kernel" [model, heads…, d_kv]; "k/kernel" and "v/kernel", or "kv/kernel" if shared.
Tensor project_queries(const Tensor& x, const DimRef& model, const Heads& heads, const ProjectionOptions& options = {},
                       Site site = Site::current());
Projections project_memory(const Tensor& x, const DimRef& model, const Heads& heads,
                           const ProjectionOptions& options = {}, Site site = Site::current());
// The output projection: "o/kernel" [heads…, d_kv, model].
Tensor project_back(const Tensor& mixed, const Dim& model, const Heads& heads, const ProjectionOptions& options = {},
                    Site site = Site::current());

struct AttentionOptions {
  bool causal = false;                   // a position sees itself and the positions before it
  Tensor bias = {};                      // added to the scores [… length, heads, memory]
  Tensor segments = {};                  // integers [… length]: a position sees only positions with its number
  std::optional<double> scale = {};      // of the scores; default: 1 / sqrt(d_kv)
  std::string memory = "memory_length";  // the name of `length` in keys and values
  std::optional<Init> kernel_init = {};  // default: like dense
  std::string name = "attention";        // the scope of the variables
};

// Multi-head self-attention along `length` of x [… length, model]; the result has x's dims. Variables "qkv/kernel" and
// "o/kernel". If a layout splits `length`, keys and values are gathered.
Tensor self_attention(const Tensor& x, const DimRef& length, const DimRef& model, const Dim& heads, const Dim& d_kv,
                      const AttentionOptions& options = {}, Site site = Site::current());

struct ProjectedLossOptions {
  std::int64_t chunks = 1;  // logits exist for one part of `batch` at a time; more chunks take less memory, more time
  double z_loss = 0;
  double label_smoothing = 0;  // the share of each target that is divided among all classes; takes one more sweep
  Tensor denominator = {};     // an f32 scalar; default: the number of tokens
  Tensor kernel = {};          // [model, vocab] in any order, used in place of a variable
  std::optional<Init> kernel_init = {};
  VariableOptions variables = {};
  std::string name = "logits";  // the scope of the kernel
};

// The sum over all tokens of cross_entropy(hidden kernel, targets, vocab), divided by the denominator; a target out of
// range has no loss. Loss and gradients are computed together: the gradients of the logits overwrite the logits.
// Variable "kernel" [model, vocab]; `batch` is a dim of hidden and targets.
Tensor projected_cross_entropy(const Tensor& hidden, const Tensor& targets, const DimRef& batch, const DimRef& model,
                               const Dim& vocab, const ProjectedLossOptions& options = {}, Site site = Site::current());

}  // namespace weft::nn
