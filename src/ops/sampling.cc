// Drawing a class from logits: the largest of logits + temperature * gumbel. The noise is keyed by the global index of each
// logit, so that the draw is the same however the classes are split.
#include "base/str.h"
#include "ops/rules.h"

namespace weft {

namespace {

constexpr double kDropped = -1e6;

void check(const Tensor& logits, const Dim& dim, const SampleOptions& options, Site site) {
  if (options.temperature < 0 || options.keep_top_k < 0 || !is_float(logits.dtype()) || !logits.shape().has(dim))
    throw UserError({.what = str("sample_categorical along ", dim, " of ", logits.dtype(), " ", logits.shape(),
                                 " at temperature ", options.temperature, ", keeping ", options.keep_top_k),
                     .where = str("sample_categorical at ", to_string(site)),
                     .fix = "give floats with that dim, a temperature of at least 0, and a number to keep (0: all)"});
}

}  // namespace

Tensor sample_categorical(const Tensor& logits, const Dim& dim, const SampleOptions& options, Site site) {
  check(logits, dim, options, site);
  const bool narrow = logits.dtype() == DType::kBF16 || logits.dtype() == DType::kF16;
  Tensor x = narrow ? cast(logits, DType::kF32, site) : logits;
  if (options.keep_top_k > 0 && options.keep_top_k < dim.size) {
    const Tensor edge = nth_largest(x, options.keep_top_k, dim, site);
    x = select(greater(x, edge, site), x, kDropped, site);
  }
  if (options.temperature == 0) return argmax(x, dim, site);
  const Tensor noise = random_gumbel(Graph(x.graph()), x.shape(), x.dtype(), site);
  return argmax(add(x, multiply(noise, options.temperature, site), site), dim, site);
}

}  // namespace weft
