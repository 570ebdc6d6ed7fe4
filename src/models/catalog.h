// The list of models: each gives its graph from a full set of sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/detail/models.h"

namespace weft::models {

struct Entry {
  std::string name;
  std::string description;
  Sizes sizes;  // the defaults: also the list of what may be set
  std::string mesh, layout;
  // Fills in graph and options. `sizes` has every size of the entry.
  std::function<void(Model& model, const Sizes& sizes)> build;
};

void build_two_layer(Model& model, const Sizes& sizes);
void build_mlp(Model& model, const Sizes& sizes);
void build_transformer(Model& model, const Sizes& sizes);
void build_language_model(Model& model, const Sizes& sizes, const LanguageModelDesign& design);

// The language models of `weft bench lm`, named "lm/<config>".
std::vector<Entry> benchmark_models();

const std::vector<Entry>& catalog();

// The dim of that name.
inline Dim dim(const Sizes& sizes, const std::string& name) { return {name, sizes.at(name)}; }

}  // namespace weft::models
