// The paper's fully connected example (section 3.2), without the bias.
#include "models/catalog.h"
#include "weft/ops.h"

namespace weft::models {

void build_two_layer(Model& model, const Sizes& sizes) {
  const Dim batch = dim(sizes, "batch"), io = dim(sizes, "io"), hidden = dim(sizes, "hidden");
  Graph& g = model.graph;
  const Tensor x = g.input("x", {batch, io});
  const Tensor dy = g.input("dy", {batch, io});
  const Tensor w = g.variable("w", {io, hidden}, init::fan_in(io));
  const Tensor v = g.variable("v", {hidden, io}, init::fan_in(hidden));

  const Tensor h = relu(einsum({x, w}, {batch, hidden}).named("h"));
  const Tensor y = einsum({h, v}, {batch, io}).named("y");
  const Tensors derivatives = gradients({y}, {w, v, x}, {dy});

  model.options.fetch = {y, derivatives[0].named("dw"), derivatives[1].named("dv"), derivatives[2].named("dx")};
}

}  // namespace weft::models
