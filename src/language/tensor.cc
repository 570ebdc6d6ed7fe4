#include "weft/tensor.h"

#include <algorithm>

#include "base/str.h"
#include "language/graph_data.h"

namespace weft {

namespace {

GraphData& graph_of(const Tensor& x, const char* asked) {
  if (!x)
    throw UserError(
        {.code = "tensor.empty",
         .what = str("the ", asked, " of an empty tensor was asked for"),
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
  graph_of(*this, "name").nodes[id_.node].name = name;
  return *this;
}

Dim DimRef::in(const Tensor& x, Site site) const { return dim_.size != 0 ? dim_ : in(Tensors{x}, site); }

Dim DimRef::in(const Tensors& xs, Site site) const {
  if (dim_.size != 0) return dim_;
  std::vector<std::string> known;
  for (const Tensor& x : xs) {
    if (const auto found = x.shape().find(dim_.name)) return x.shape()[*found];
    for (const std::string& name : x.shape().names())
      if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
  }
  const std::string near = nearest_word(dim_.name, known);
  const std::string of = xs.size() == 1 ? str("'", xs[0].name(), "' ", xs[0].shape(), " has") : "the tensors have";
  throw UserError({.code = "tensor.unknown-dim",
                   .what = str(of, " no dim '", dim_.name, "'"),
                   .where = site,
                   .fix = near.empty() ? str("name one of its dims: ", known.empty() ? "none" : join(known, ", "))
                                       : str("did you mean '", near, "'?")});
}

Shape DimRefs::in(const Tensor& x, Site site) const {
  std::vector<Dim> dims;
  for (const DimRef& dim : dims_) dims.push_back(dim.in(x, site));
  return Shape(std::move(dims));
}

Shape DimRefs::in(const Tensors& xs, Site site) const {
  std::vector<Dim> dims;
  for (const DimRef& dim : dims_) dims.push_back(dim.in(xs, site));
  return Shape(std::move(dims));
}

void Operand::refuse_empty(const Site& site) {
  throw UserError({.code = "op.empty-operand",
                   .what = "an operand is an empty tensor, which has no value",
                   .where = site,
                   .fix = "test the tensor first; gradients() returns an empty Tensor for an x that no y depends on"});
}

}  // namespace weft
