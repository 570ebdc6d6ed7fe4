// Draws a class from logits: the largest of logits + temperature * gumbel. The noise is keyed by the global index of
// each logit, so the draw does not depend on how the classes are split.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

constexpr double kDropped = -1e6;

void check(const Tensor& logits, const Dim& dim, const SampleOptions& options, Site site) {
  const bool keeps = options.keep_top_k >= 0 && options.keep_top_p > 0 && options.keep_top_p <= 1;
  if (options.temperature < 0 || !keeps || !is_float(logits.dtype()) || !logits.shape().has(dim))
    throw UserError(
        {.code = "sample-categorical.bad-options",
         .what = str("sample_categorical along ", dim, " of ", logits.dtype(), " ", logits.shape(), " at temperature ",
                     options.temperature, ", keeping ", options.keep_top_k, " and probability ", options.keep_top_p),
         .where = str("sample_categorical at ", to_string(site)),
         .fix = "give floats with that dim, a temperature of at least 0, a number to keep (0: all) and a "
                "probability above 0 (1: all)"});
}

// The least of the largest logits that together have the probability. It works on sorted, unsplit lines, so that the
// order of the sum does not depend on how the classes are split.
Tensor edge_of(double probability, const Tensor& logits, const Dim& dim, double temperature, Site site) {
  const Tensor sorted = sort(logits, dim, true, site).values;
  const Tensor shares = softmax(multiply(sorted, 1 / temperature, site), dim, site);
  const Tensor above = cumsum(shares, dim, /*exclusive=*/true, /*reverse=*/false, site);
  return reduce_min(select(less(above, probability, site), sorted, -kDropped, site), {dim}, site);
}

}  // namespace

Tensor sample_categorical(const Tensor& logits, const DimRef& classes, const SampleOptions& options, Site site) {
  const Dim dim = classes.in(logits, site);
  check(logits, dim, options, site);
  const bool narrow = logits.dtype() == DType::kBF16 || logits.dtype() == DType::kF16;
  Tensor x = narrow ? cast(logits, DType::kF32, site) : logits;
  if (options.keep_top_k > 0 && options.keep_top_k < dim.size) {
    const Tensor edge = nth_largest(x, options.keep_top_k, dim, site);
    x = select(greater(x, edge, site), x, kDropped, site);
  }
  if (options.temperature == 0) return argmax(x, dim, site);
  if (options.keep_top_p < 1) {
    const Tensor edge = edge_of(options.keep_top_p, x, dim, options.temperature, site);
    x = select(greater_equal(x, edge, site), x, kDropped, site);
  }
  const Tensor noise = random_gumbel(Graph(x.graph()), x.shape(), x.dtype(), site);
  return argmax(add(x, multiply(noise, options.temperature, site), site), dim, site);
}

}  // namespace weft
