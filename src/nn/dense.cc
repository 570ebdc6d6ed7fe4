#include "nn/seen.h"
#include "weft/error.h"
#include "weft/nn.h"
#include "weft/detail/words.h"

namespace weft::nn {

namespace {

// The dims that dense sums: the requested dims, or the last dim of x.
Shape reduced_dims(const Tensor& x, const DenseOptions& options, Site site) {
  if (!options.reduced.empty()) return options.reduced.in(x, site);
  if (x.shape().empty())
    throw UserError({.code = "nn.dense-of-scalar",
                     .what = "dense was given the scalar '" + x.name() + "', which has no dim to sum",
                     .where = "dense at " + to_string(site),
                     .fix = "give a tensor with dims"});
  return {x.shape().dims().back()};
}

// A dim that both x and the kernel's output have would be matched by name instead of created.
void check_new(const Tensor& x, const Shape& reduced, const Shape& made, Site site) {
  for (const Dim& dim : x.shape().minus(reduced))
    if (made.has(dim.name))
      throw UserError({.code = "nn.dense-dim-kept",
                       .what = "dense makes dim '" + dim.name + "', which '" + x.name() + "' has and keeps",
                       .where = "dense at " + to_string(site),
                       .fix = "give the new dim another name, or name it in DenseOptions::reduced too"});
}

}  // namespace

Tensor dense(const Tensor& x, const Shape& made, const DenseOptions& options, Site site) {
  Graph g(x.graph());
  const Graph::Scope scope = g.scope(options.name);
  Tensor input = x;
  Shape reduced = reduced_dims(x, options, site);
  check_new(x, reduced, made, site);
  for (const Dim& dim : Shape(reduced))
    if (made.has(dim.name)) {
      input = rename(input, dim, "_" + dim.name, site);
      reduced = reduced.renamed(dim.name, "_" + dim.name);
    }
  const VariableOptions as_x = seen_as(x, options.variables);
  const Init init = options.kernel_init.value_or(init::variance_scaling(1, init::Fan::kIn, reduced, made));
  const Shape experts = options.experts.in(x, site);
  const Tensor kernel = g.variable("kernel", experts.plus(reduced).plus(made), init, as_x, site);
  const Shape output = input.shape().minus(reduced).plus(made);
  Tensor y = options.multiply ? options.multiply(input, kernel, output, site) : einsum({input, kernel}, output, site);
  if (options.bias) y = add(y, g.variable("bias", experts.plus(made), init::zeros(), as_x, site), site);
  return options.activation ? options.activation(y, site) : y;
}

Tensor dense_product(const Tensor& x, const Shape& made, const std::vector<Activation>& activations,
                     const DenseOptions& options, Site site) {
  if (activations.empty())
    throw UserError({.code = "nn.dense-product-without-layers",
                     .what = "dense_product '" + options.name + "' has no layers",
                     .where = "dense_product at " + to_string(site),
                     .fix = "give at least one activation; an empty one is linear"});
  Tensor product;
  for (std::size_t i = 0; i < activations.size(); ++i) {
    DenseOptions factor = options;
    factor.activation = activations[i];
    factor.name = options.name + "_" + std::to_string(i);
    const Tensor y = dense(x, made, factor, site);
    product = product ? multiply(product, y, site) : y;
  }
  return product;
}

}  // namespace weft::nn
