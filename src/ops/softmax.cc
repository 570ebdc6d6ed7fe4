// Functions built on the log of a sum of exponentials. None of them can overflow.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

// The largest logit, finite, without a gradient: it only moves the exponents into range.
Tensor reference_logit(const Tensor& x, const Dim& dim, const Tensor& extra, Site site) {
  Tensor most = reduce_max(x, {dim}, site);
  if (extra) most = maximum(most, extra, site);
  const double lowest = x.dtype() == DType::kF16 ? -65504.0 : -3.0e38;
  return stop_gradient(maximum(most, lowest, site), site);
}

Tensor sum_of_exponentials(const Tensor& x, const Dim& dim, const Tensor& extra, const Tensor& reference, Site site) {
  const Tensor sum = reduce_sum(exp(subtract(x, reference, site), site), {dim}, site);
  return extra ? add(sum, exp(subtract(extra, reference, site), site), site) : sum;
}

Tensor extra_tensor(const Tensor& x, const Operand& extra, Site site) {
  return extra.tensor() ? extra.tensor() : constant(Graph(x.graph()), extra.number(), {}, x.dtype(), site);
}

Tensor logsumexp(const Tensor& x, const Dim& dim, const Tensor& extra, Site site) {
  const Tensor reference = reference_logit(x, dim, extra, site);
  return add(log(sum_of_exponentials(x, dim, extra, reference, site), site), reference, site);
}

Tensor softmax_with(const Tensor& x, const Dim& dim, const Tensor& extra, Site site) {
  const Tensor reference = reference_logit(x, dim, extra, site);
  const Tensor exponentials = exp(subtract(x, reference, site), site);
  Tensor sum = reduce_sum(exponentials, {dim}, site);
  if (extra) sum = add(sum, exp(subtract(extra, reference, site), site), site);
  return multiply(exponentials, reciprocal(sum, site), site);
}

}  // namespace

Tensor reduce_logsumexp(const Tensor& x, const DimRef& dim, Site site) {
  return logsumexp(x, dim.in(x, site), {}, site);
}
Tensor reduce_logsumexp(const Tensor& x, const DimRef& dim, const Operand& extra_logit, Site site) {
  return logsumexp(x, dim.in(x, site), extra_tensor(x, extra_logit, site), site);
}

Tensor softmax(const Tensor& x, const DimRef& dim, Site site) { return softmax_with(x, dim.in(x, site), {}, site); }
Tensor softmax(const Tensor& x, const DimRef& dim, const Operand& extra_logit, Site site) {
  return softmax_with(x, dim.in(x, site), extra_tensor(x, extra_logit, site), site);
}

Tensor log_softmax(const Tensor& x, const DimRef& dim, Site site) {
  return subtract(x, reduce_logsumexp(x, dim, site), site);
}

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, const DimRef& dim, double z_loss, Site site) {
  const Dim classes = dim.in(logits, site);
  const Tensor log_z = reduce_logsumexp(logits, classes, site);
  const auto with_z_loss = [&](const Tensor& loss) {
    return z_loss == 0 ? loss : add(loss, multiply(square(log_z, site), z_loss, site), site);
  };
  if (targets.shape().has(classes.name)) {
    const Tensor log_probabilities = subtract(logits, log_z, site);
    const Tensor hit = einsum({log_probabilities, targets}, logits.shape().minus({classes}), site);
    return with_z_loss(negative(hit, site));
  }
  if (!is_integer(targets.dtype()))
    throw UserError({.code = "cross-entropy.bad-targets",
                     .what = str("cross_entropy targets '", targets.name(), "' ", targets.shape(), " are ",
                                 targets.dtype(), " without the class dim ", classes),
                     .where = str("cross_entropy at ", to_string(site)),
                     .fix = "give whole class ids, or probabilities that have the class dim"});
  const Tensor loss = with_z_loss(subtract(log_z, gather(logits, targets, classes, site), site));
  Tensor valid = greater_equal(targets, 0, site);
  if (!why_not_held(classes.size, targets.dtype())) valid = logical_and(valid, less(targets, classes.size, site), site);
  return select(valid, loss, 0.0, site);
}

Tensor sigmoid_cross_entropy(const Tensor& logits, const Tensor& targets, Site site) {
  const Tensor z = targets.dtype() == logits.dtype() ? targets : cast(targets, logits.dtype(), site);
  return subtract(softplus(logits, site), multiply(logits, z, site), site);
}

}  // namespace weft
