// Dense layers whose dims alternate, so that one axis can split every second one: the product then needs a reduction
// in every second layer only.
#include "models/catalog.h"
#include "weft/ops.h"
#include "weft/optim.h"

namespace weft::models {

void build_mlp(Model& model, const Sizes& sizes) {
  const Dim batch = dim(sizes, "batch"), pixel = dim(sizes, "pixel"), digit = dim(sizes, "digit");
  const Dim even = dim(sizes, "hidden"), odd = dim(sizes, "width");
  Graph& g = model.graph;
  const Tensor image = g.input("image", {batch, pixel});
  const Tensor label = g.input("label", {batch}, DType::kI32);

  Tensor x = image;
  Dim in = pixel;
  for (std::int64_t i = 0; i < sizes.at("layers"); ++i) {
    const auto scope = g.scope("layer_" + std::to_string(i));
    const Dim out = i % 2 == 0 ? even : odd;
    const Tensor w = g.variable("w", {in, out}, init::fan_in(in));
    const Tensor b = g.variable("b", {out}, init::zeros());
    x = relu(einsum({x, w}, {batch, out}) + b);
    in = out;
  }
  const Tensor w = g.variable("logits/w", {in, digit}, init::fan_in(in));
  const Tensor logits = einsum({x, w}, {batch, digit}).named("logits");
  const Tensor loss = mean(cross_entropy(logits, label, digit)).named("loss");

  model.options.fetch = {loss};
  model.options.update = optim::sgd(loss, g.variables(), 0.1);
}

}  // namespace weft::models
