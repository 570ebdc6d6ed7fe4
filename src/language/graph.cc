#include "weft/graph.h"

#include "base/str.h"
#include "language/graph_data.h"

namespace weft {

std::string GraphData::scoped(const std::string& name) const {
  return scopes.empty() ? name : str(join(scopes, "/"), "/", name);
}

Graph::Graph() : data_(std::make_shared<GraphData>()) {}

Graph::Scope::Scope(std::shared_ptr<GraphData> data, const std::string& name) : data_(std::move(data)) {
  if (name.empty())
    throw UserError({.code = "graph.empty-scope-name",
                     .what = "a scope needs a name",
                     .where = "Graph::scope",
                     .fix = "give a name such as \"layer_0\""});
  data_->scopes.push_back(name);
}

Graph::Scope::~Scope() { data_->scopes.pop_back(); }

UpdatePhase::UpdatePhase(const Tensor& any) : graph_(any.graph()), before_(static_cast<int>(graph_->phase)) {
  graph_->phase = Phase::kUpdate;
}

UpdatePhase::~UpdatePhase() { graph_->phase = static_cast<Phase>(before_); }

Tensors Graph::all_variables() const {
  Tensors tensors;
  for (TensorId id : data_->variables) tensors.emplace_back(data_, id);
  return tensors;
}

Tensors Graph::inputs() const {
  Tensors tensors;
  for (const auto& [name, node] : data_->inputs) tensors.emplace_back(data_, TensorId{node, 0});
  return tensors;
}

}  // namespace weft
