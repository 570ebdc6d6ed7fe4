#include "weft/tensor.h"

#include "base/str.h"
#include "language/graph_data.h"

namespace weft {

namespace {

GraphData& graph_of(const Tensor& x, const char* asked) {
  if (!x)
    throw UserError(
        {.what = str("the ", asked, " of an empty tensor was asked for"),
         .where = str("Tensor::", asked),
         .fix = "test the tensor first; gradients() returns an empty Tensor for an x that no y depends on"});
  return *x.graph();
}

}  // namespace

const Shape& Tensor::shape() const { return graph_of(*this, "shape").type(id_).shape; }
DType Tensor::dtype() const { return graph_of(*this, "dtype").type(id_).dtype; }
const std::string& Tensor::name() const { return graph_of(*this, "name").node(id_).name; }
Site Tensor::site() const { return graph_of(*this, "site").node(id_).site; }

Tensor Tensor::named(const std::string& name) const {
  graph_of(*this, "name").nodes[static_cast<std::size_t>(id_.node)].name = name;
  return *this;
}

}  // namespace weft
