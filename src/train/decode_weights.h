// The copies of kernels that a graph multiplies with, kept up to date with the weights.
#pragma once

#include <optional>

#include "weft/decode.h"

namespace weft::decode {

// What the graphs of a decoder multiply with. A step with few rows is faster with copies in f32 too; a prefill has many.
models::DecodeWeights step_weights(const Options& options, std::int64_t batch);
models::DecodeWeights prefill_weights(const Options& options);

class CopiedWeights {
 public:
  CopiedWeights(const Session& session, const Graph& graph, const models::WeightCopies& copies, const Layout& layout);

  // Makes the copies anew if the weights have changed since the last call. UserError if a kernel holds NaN or infinity,
  // which no i8 can express.
  void refresh(Site site);

 private:
  Session session_;
  models::WeightCopies copies_;
  std::optional<Executable> copy_;  // empty: there are no copies
  std::optional<std::uint64_t> changes_;
};

}  // namespace weft::decode
