// Built-in models for `weft explain` and `weft bench`, by name and with settable sizes. Each is a graph of the public
// functions, with its fetches and updates, a mesh and a layout. Language models for programs: weft/transformer.h.
// Not part of the API's promise: it may change in any release.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/graph.h"
#include "weft/mesh.h"
#include "weft/optim.h"
#include "weft/session.h"
#include "weft/transformer.h"

namespace weft::models {

// Dim name (or "layers") -> size.
using Sizes = std::map<std::string, std::int64_t>;

struct Model {
  std::string name;
  Graph graph;
  CompileOptions options;  // fetch and update
  Mesh mesh;
  Layout layout;  // for that mesh
};

std::vector<std::string> names();
// One line on a model, and its default sizes. UserError for an unknown name.
std::string description(const std::string& name);
Sizes default_sizes(const std::string& name);

// The default sizes with the given sizes in place. UserError for an unknown model or size.
Sizes complete_sizes(const std::string& name, const Sizes& given);

// UserError for an unknown model or size.
Model build(const std::string& name, const Sizes& sizes = {});

// What a language model of `weft bench lm` has besides its sizes, and how the bench trains it.
struct LanguageModelDesign {
  Norm norm = Norm::kLayer;  // with a bias
  double norm_epsilon = 1e-6;
  std::string activation = "relu";  // of the feed-forward nets
  bool biases = false;              // of the feed-forward nets and of the projections of attention
  bool tied = false;                // the output table is the embedding, unscaled
  // Standard deviations of the initial tables, of kernels, and of the kernels that write to the residual stream. 0: 1 over
  // the root of the number of terms of a sum.
  double deviation = 0;
  double residual_deviation = 0;
  DType activations = DType::kF32;  // of all values between the tables and the loss, by default
  double rate = 1e-3;               // of Adam
  optim::AdamOptions adam = {};
};
// Of a config in the list: "tiny" for the model "lm/tiny".
LanguageModelDesign language_model_design(const std::string& config, const Sizes& sizes);
std::vector<std::string> language_model_configs();  // the names, in the order of the list

// The model "transformer", which `weft bench lm` trains. It has an embedding, learned positions, and by default a separate
// output table. A layer has causal attention and a feed-forward net, each after a norm, with residual connections.
// Inputs and targets are separate, like in the programs of bench/peers.
struct LanguageModel {
  Graph graph;
  Tensor inputs, targets;  // i32 [batch length]
  Tensor loss;             // f32, the mean cross entropy of the targets
};

struct LanguageModelOptions {
  LanguageModelDesign design = {};
  std::optional<DType> activations = {};  // in place of the design's; variables stay f32
  std::optional<Init> init = {};   // for all kernels and tables; default: a separate rule for each kind
  std::int64_t loss_chunks = 1;    // see nn::ProjectedLossOptions::chunks
  std::int64_t microbatches = 1;   // of the batch, one after another: see microbatch_loss()
};

// Sizes that are not given are the defaults of "transformer". UserError for an unknown size.
LanguageModel language_model(const Sizes& sizes, const LanguageModelOptions& options = {});

// "batch=64,hidden=1024". UserError, with the place, for any other text, a size below one or a dim given twice.
Sizes parse_sizes(std::string_view text);

}  // namespace weft::models
