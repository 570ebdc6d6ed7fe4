#include "train/decode_weights.h"

#include <algorithm>
#include <cmath>

#include "train/layout_parts.h"
#include "weft/detail/session_access.h"
#include "weft/error.h"

namespace weft::decode {

using models::DecodeWeights;

models::KernelPanels panels_of(std::int64_t lanes, const models::TransformerOptions& model, const Options& options,
                               std::int64_t batch, const Mesh& mesh, const Layout& layout) {
  constexpr std::int64_t kFewRows = 8;  // whose products with plain copies of bf16 and i8 are faster, measured
  models::KernelPanels panels;
  if (model.activations != DType::kF32) return panels;  // products with panels have sums in f32
  if (options.weights != Weights::kF32 && batch * options.beams <= kFewRows) return panels;
  panels.lanes = lanes;
  for (const LayoutRule& rule : layout.rules()) panels.parts[rule.dim] = parts_of(layout, mesh, rule.dim);
  return panels;
}

DecodeWeights weights_of(const Options& options, const models::KernelPanels& panels) {
  switch (options.weights) {
    case Weights::kBF16: return DecodeWeights::kBF16;
    case Weights::kI8: return DecodeWeights::kI8;
    default: return panels.lanes > 0 ? DecodeWeights::kCopied : DecodeWeights::kTrained;
  }
}

models::WeightCopies copies_without(const models::WeightCopies& copies, const models::WeightCopies& others) {
  models::WeightCopies left = copies;
  std::erase_if(left, [&](const models::WeightCopy& copy) {
    return std::ranges::find(others, copy.kernel, &models::WeightCopy::kernel) != others.end();
  });
  return left;
}

CompileOptions copy_options(const models::WeightCopies& copies) {
  CompileOptions options;
  for (const models::WeightCopy& copy : copies) {
    options.fetch.push_back(copy.sum);
    options.update.insert(options.update.end(), copy.updates.begin(), copy.updates.end());
  }
  return options;
}

CopiedWeights::CopiedWeights(const Session& session, const std::vector<GraphCopies>& graphs, const Layout& layout)
    : session_(session) {
  for (const GraphCopies& of : graphs)
    if (!of.copies.empty()) made_.push_back({of.copies, session_.compile(of.graph, layout, copy_options(of.copies))});
}

void CopiedWeights::refresh(Site site) {
  std::uint64_t changes = 0;
  for (const Made& made : made_)
    for (const models::WeightCopy& copy : made.copies) changes += detail::changes(session_, copy.kernel);
  if (changes_ == changes) return;
  for (Made& made : made_) {
    const Values sums = made.run.run({});
    for (const models::WeightCopy& copy : made.copies)
      if (!std::isfinite(sums.scalar(copy.sum)))
        throw UserError({.code = "decode.weights-not-finite",
                         .what = "the kernel '" + copy.kernel + "' holds NaN or infinity, so no copy of it can be made",
                         .where = site,
                         .fix = "load a checkpoint from before its training diverged"});
  }
  changes_ = changes;
}

}  // namespace weft::decode
