#include "train/decode_weights.h"

#include <cmath>

#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft::decode {

using models::DecodeWeights;

DecodeWeights step_weights(const Options& options, std::int64_t batch) {
  constexpr std::int64_t kFewRows = 12;  // from there on products are limited by arithmetic, not by memory
  if (options.weights != Weights::kF32) return prefill_weights(options);
  return batch * options.beams <= kFewRows ? DecodeWeights::kCopied : DecodeWeights::kTrained;
}

DecodeWeights prefill_weights(const Options& options) {
  switch (options.weights) {
    case Weights::kBF16: return DecodeWeights::kBF16;
    case Weights::kI8: return DecodeWeights::kI8;
    default: return DecodeWeights::kTrained;
  }
}

CopiedWeights::CopiedWeights(const Session& session, const Graph& graph, const models::WeightCopies& copies,
                             const Layout& layout)
    : session_(session), copies_(copies) {
  if (!copies.kernels.empty())
    copy_ = session_.compile(graph, layout, {.fetch = copies.sums, .update = copies.updates});
}

void CopiedWeights::refresh(Site site) {
  if (!copy_) return;
  std::uint64_t changes = 0;
  for (const std::string& kernel : copies_.kernels) changes += detail::changes(session_, kernel);
  if (changes_ == changes) return;
  const Values sums = copy_->run({});
  for (std::size_t i = 0; i < copies_.kernels.size(); ++i)
    if (!std::isfinite(sums.scalar(copies_.sums[i])))
      throw UserError(
          {.code = "decode.weights-not-finite",
           .what = "the kernel '" + copies_.kernels[i] + "' holds NaN or infinity, so no copy of it can be made",
           .where = site,
           .fix = "load a checkpoint from before its training diverged"});
  changes_ = changes;
}

}  // namespace weft::decode
