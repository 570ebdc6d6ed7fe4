// Built-in models, by name and with settable sizes: what `weft explain` shows. Each is a graph made of the public
// functions alone, with what to fetch and update, and a mesh and layout that suit it.
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
#include "weft/session.h"

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
// One line on the model of that name, and its sizes unless others are given. UserError if there is no such model.
std::string description(const std::string& name);
Sizes default_sizes(const std::string& name);

// The model's sizes with the given ones in place. UserError if there is no such model, or if it has no such size.
Sizes complete_sizes(const std::string& name, const Sizes& given);

// UserError if there is no such model, or if it has no such size.
Model build(const std::string& name, const Sizes& sizes = {});

// The model called "transformer": embedding and positions, layers of causal attention and a relu feed-forward net, each
// after a layer norm and added back, and an output table of its own.
struct LanguageModel {
  Graph graph;
  Tensor inputs, targets;  // i32 [batch length]
  Tensor loss;             // f32, the mean cross entropy of the targets
};

struct LanguageModelOptions {
  DType activation = DType::kF32;  // of everything between the tables and the loss; variables stay f32
  std::optional<Init> init = {};   // of kernels and tables; by default each has its own
  std::int64_t loss_chunks = 1;    // parts of the batch whose logits exist at a time
};

// Sizes that are not given are those of "transformer". UserError if it has no such size.
LanguageModel language_model(const Sizes& sizes, const LanguageModelOptions& options = {});

// "batch=64,hidden=1024". UserError, with the place, for any other text, a size below one or a dim given twice.
Sizes parse_sizes(std::string_view text);

}  // namespace weft::models
