// The loss of a language model from its last hidden values. One sweep over the logits computes the loss and overwrites
// the logits with their gradients (the compiler's pass fuse). With chunks, a loop does the same for one part
// of the positions after another.
#include "nn/seen.h"

namespace weft::nn {

namespace {

// -log p of targets that give the share `smoothing` of their probability to all classes.
Tensor smoothed(const Tensor& logits, const Tensor& targets, const Dim& vocab, const ProjectedLossOptions& o,
                Site site) {
  const Tensor hard = cross_entropy(logits, targets, vocab, o.z_loss, site);
  if (o.label_smoothing == 0) return hard;
  // logZ - (1 - s) target - s mean = hard + s (target - mean).
  const Tensor away = subtract(gather(logits, targets, vocab, site),
                               transpose(mean(logits, {vocab}, site), targets.shape(), site), site);
  Tensor counts = greater_equal(targets, 0, site);
  if (!why_not_held(vocab.size, targets.dtype())) counts = logical_and(counts, less(targets, vocab.size, site), site);
  return add(hard, select(counts, multiply(away, o.label_smoothing, site), 0.0, site), site);
}

}  // namespace

Tensor projected_cross_entropy(const Tensor& hidden, const Tensor& targets, const DimRef& batch,
                               const DimRef& model_dim, const Dim& vocab, const ProjectedLossOptions& options,
                               Site site) {
  const Dim model = model_dim.in(hidden, site);
  Graph g(hidden.graph());
  const Graph::Scope scope = g.scope(options.name);
  const Init init = options.kernel_init.value_or(init::variance_scaling(1, init::Fan::kIn, {model}, {vocab}));
  const Tensor kernel = options.kernel
                            ? options.kernel
                            : g.variable("kernel", {model, vocab}, init, seen_as(hidden, options.variables), site);
  const auto loss_of = [&](const Tensors& part) {
    const Tensor logits = einsum({part[0], kernel}, part[0].shape().minus({model}).plus({vocab}), site).named("logits");
    const Tensor each = smoothed(cast(logits, DType::kF32, site), part[1], vocab, options, site);
    if (!options.denominator) return mean(each, site);
    const Tensor share = divide(static_cast<double>(options.chunks), options.denominator, site);
    return multiply(reduce_sum(each, site), share, site);
  };
  if (options.chunks == 1) return loss_of({hidden, targets});
  return microbatch_loss({hidden, targets}, batch, options.chunks, loss_of, site);
}

}  // namespace weft::nn
