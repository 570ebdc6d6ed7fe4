#include "train/candidates.h"

#include <algorithm>

#include "train/search.h"
#include "weft/ops.h"

namespace weft::decode {

namespace {

const std::string kCandidate = "candidate";

Tensor without_end(const Tensor& logits, const Dim& vocab, Site site) {
  const Tensor is_end = equal(iota(Graph(logits.graph()), vocab, DType::kI32, site), static_cast<double>(kEnd), site);
  return select(is_end, subtract(logits, 1e9, site), logits, site);
}

CandidateTensors likeliest(const Tensor& logits, const Dim& vocab, std::int64_t number, Site site) {
  const TopKResult best = top_k(logits, vocab, {kCandidate, std::min(number, vocab.size)}, false, site);
  return {best.indices, subtract(best.values, reduce_logsumexp(logits, vocab, site), site)};
}

// Its probability is the model's own, whatever the temperature and the cuts are.
CandidateTensors drawn(const Tensor& logits, const Dim& vocab, const Options& options, Site site) {
  const auto scope = Graph(logits.graph()).scope("sample_" + std::to_string(options.seed));
  const SampleOptions how{options.temperature, options.top_k, options.top_p};
  const Tensor id = sample_categorical(logits, vocab, how, site);
  const Tensor is_it = equal(iota(Graph(logits.graph()), vocab, DType::kI32, site), id, site);
  const Tensor its_logit = reduce_sum(select(is_it, logits, 0.0, site), {vocab}, site);
  const Tensor log_probability = subtract(its_logit, reduce_logsumexp(logits, vocab, site), site);
  std::vector<Dim> dims = id.shape().dims();
  dims.push_back({kCandidate, 1});
  return {reshape(id, dims, site), reshape(log_probability, dims, site)};
}

}  // namespace

CandidateTensors offer(Tensor logits, const Options& options, Site site) {
  const Dim vocab = logits.shape().dim("vocab");
  if (options.never_end) logits = without_end(logits, vocab, site);
  if (options.temperature > 0) return drawn(logits, vocab, options, site);
  return likeliest(logits, vocab, options.beams == 1 ? 1 : 2 * options.beams, site);
}

}  // namespace weft::decode
