#include "weft/nn.h"

namespace weft::nn {

Tensor layer_norm(const Tensor& x, const Dim& dim, const LayerNormOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  const VariableOptions as_x{.activation = x.dtype()};
  const Tensor scale = g.variable("scale", {dim}, init::ones(), as_x, site);
  const Tensor bias = g.variable("bias", {dim}, init::zeros(), as_x, site);
  const Tensor centred = subtract(x, mean(x, {dim}, site), site);
  const Tensor variance = mean(square(centred, site), {dim}, site);
  const Tensor normed = multiply(centred, rsqrt(add(variance, options.epsilon, site), site), site);
  return add(multiply(normed, scale, site), bias, site);
}

Tensor embedding(const Tensor& ids, const Dim& vocab, const Dim& model, const std::string& name, const Init& init,
                 Site site) {
  const Tensor table = Graph(ids.graph()).variable(name, {vocab, model}, init, {}, site);
  return gather(table, ids, vocab, site);
}

}  // namespace weft::nn
