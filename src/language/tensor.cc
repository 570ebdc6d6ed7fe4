#include "weft/tensor.h"

#include "language/graph_data.h"

namespace weft {

const Shape& Tensor::shape() const { return graph_->type(id_).shape; }
DType Tensor::dtype() const { return graph_->type(id_).dtype; }
const std::string& Tensor::name() const { return graph_->node(id_).name; }
Site Tensor::site() const { return graph_->node(id_).site; }

Tensor Tensor::named(const std::string& name) const {
  graph_->nodes[static_cast<std::size_t>(id_.node)].name = name;
  return *this;
}

}  // namespace weft
