// The loss of a language model from its last hidden values. One sweep over the logits gives the loss and overwrites them
// with their derivatives (the compiler's pass fuse); in chunks, a loop does so part by part.
#include "weft/nn.h"

namespace weft::nn {

Tensor projected_cross_entropy(const Tensor& hidden, const Tensor& targets, const Dim& batch, const Dim& model,
                               const Dim& vocab, const ProjectedLossOptions& options, Site site) {
  Graph g(hidden.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Init init = options.kernel_init.value_or(init::variance_scaling(1, init::Fan::kIn, {model}, {vocab}));
  const Tensor kernel = g.variable("kernel", {model, vocab}, init, {.activation = hidden.dtype()}, site);
  const auto loss_of = [&](const Tensors& part) {
    const Tensor logits = einsum({part[0], kernel}, part[0].shape().minus({model}).plus({vocab}), site).named("logits");
    const Tensor wide = cast(logits, DType::kF32, site);
    return mean(cross_entropy(wide, part[1], vocab, options.z_loss, site), site);
  };
  if (options.chunks == 1) return loss_of({hidden, targets});
  return microbatch_loss({hidden, targets}, batch, options.chunks, loss_of, site);
}

}  // namespace weft::nn
