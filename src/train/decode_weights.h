// The copies of kernels that a graph multiplies with, kept up to date with the weights.
#pragma once

#include <optional>

#include "weft/decode.h"

namespace weft::decode {

// The order of a decoder's copies on a device with panels of `lanes` outputs (detail::panel_lanes).
models::KernelPanels panels_of(std::int64_t lanes, const models::TransformerOptions& model, const Options& options,
                               std::int64_t batch, const Mesh& mesh, const Layout& layout);

// What a graph multiplies with. If the engine has products with panels, copies in f32 are faster than the weights too.
models::DecodeWeights weights_of(const Options& options, const models::KernelPanels& panels = {});

// The copies that a graph reads.
struct GraphCopies {
  Graph graph;
  models::WeightCopies copies;
};

// Those copies of the second graph that the first graph has not.
models::WeightCopies copies_without(const models::WeightCopies& copies, const models::WeightCopies& others);
// What makes copies, to be compiled with their graph.
CompileOptions copy_options(const models::WeightCopies& copies);

class CopiedWeights {
 public:
  CopiedWeights(const Session& session, const std::vector<GraphCopies>& graphs, const Layout& layout);

  // Makes the copies anew if the weights have changed since the last call. UserError if a kernel holds NaN or infinity,
  // which no i8 can express.
  void refresh(Site site);

 private:
  struct Made {
    models::WeightCopies copies;
    Executable run;
  };

  Session session_;
  std::vector<Made> made_;  // of each graph that has copies
  std::optional<std::uint64_t> changes_;
};

}  // namespace weft::decode
